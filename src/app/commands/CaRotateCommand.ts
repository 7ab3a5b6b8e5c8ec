import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { basename } from "node:path"
import { Entropy } from "../../crypto/Entropy.ts"
import { issuingAt } from "../../domain/IssuerState.ts"
import { everyRole } from "../../domain/Role.ts"
import { hiddenIn } from "../../engine/HiddenText.ts"
import { readTextFile, said } from "../../engine/host/KeyFile.ts"
import { withLockFile } from "../../engine/host/LockFile.ts"
import { rewriteFile } from "../../engine/host/RewrittenFile.ts"
import { currentSeconds, parseRfc3339, rfc3339 } from "../../engine/Time.ts"
import { hasSharedUrl, sharedUrls } from "../../operations/operator/authority/SharedUrls.ts"
import type { LocalCaSettings } from "../../services/signing/ConfiguredCas.ts"
import { casOf } from "../../services/signing/ConfiguredCas.ts"
import * as LocalCa from "../../services/signing/LocalCa.ts"
import type { Loaded } from "../../settings/Load.ts"
import type { OtherCaText } from "../../settings/OtherCaText.ts"
import { otherCaText, retiredIn } from "../../settings/OtherCaText.ts"
import { caNameFault } from "../../settings/SignerTable.ts"
import { CommandFailed, filesFailed } from "../CommandFailed.ts"
import { fromHere } from "../Here.ts"
import { Progress } from "../Progress.ts"
import { withRecords } from "../Records.ts"
import { Settings } from "../Settings.ts"
import type { CaProfile } from "./CaProfile.ts"
import { ofCa, profileFlag } from "./CaProfile.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, neededText, optionalText, refusal, repeatedFlag, switchFlag } from "./Flags.ts"
import { print } from "./Print.ts"

/*
 * Commands that change which CA of a profile issues. They write what has to stand in the configuration, and change the
 * file only with `--write`.
 */

const cannot = (message: string) => new CommandFailed({ code: 3, message })

const writeFlag = switchFlag("write", "Change the file. Without it, only print what has to stand there.")

const daySeconds = 86_400

/** What processes must do after a change of the file. */
const reloadHint = "Let every process read it: systemctl reload acme-svc, or SIGHUP."

/** Returns the text of the configuration file. Fails if there is no file, because then nothing can be added. */
const textOf = ({ file: { path, text }, filePresent }: Loaded) =>
  text === undefined || !filePresent
    ? cannot(`${path} does not exist, so the CAs of the profile cannot be changed there.`)
    : Effect.succeed(text)

/**
 * Returns what `signer.local_ca` would be with a changed file. Fails as `config check` would, and says that the faults
 * and their lines are those of the changed file.
 */
const localCaWith = (loaded: Loaded, profile: string, text: string) =>
  Effect.gen(function*() {
    const { fresh } = yield* Settings
    const { path } = loaded.file
    const { config } = yield* Effect.mapError(
      fresh(new Set(everyRole), { path, text }),
      ({ code, message }) =>
        new CommandFailed({
          code,
          message: `${path} is as before, because with the change it would be refused.\n${message}`
        })
    )
    const found = config.profiles.find(({ name }) => name === profile)
    return found?.signer.local_ca ?? (yield* cannot(`Profile ${profile} is not in ${loaded.file.path}.`))
  })

/**
 * Replaces the content of the configuration file. Fails if the file has changed since it was read, so that of two
 * commands at the same moment none undoes what the other has written.
 */
const write = ({ file: { path, text } }: Loaded, content: string) =>
  Effect.gen(function*() {
    const entropy = yield* Entropy
    const suffix = yield* entropy.token
    const isWritten = yield* withLockFile(
      `${path}.lock`,
      Effect.gen(function*() {
        if ((yield* readTextFile(path)).text !== text) return false
        yield* rewriteFile({ path, content, suffix })
        return true
      })
    ).pipe(
      Effect.catchTags({
        FileUnusable: (error) =>
          cannot(`${path} cannot be changed: ${said(error)}. Write it as this command prints it without --write.`),
        LockUnavailable: ({ message }) => cannot(`${path} cannot be changed: ${message}.`)
      })
    )
    if (!isWritten) return yield* cannot(`${path} has been changed meanwhile. Run the command again.`)
  })

/** Refuses a change after which verifiers of existing certificates would read the list of another CA. */
const refuseMixedLists = ({ local_ca: { crl_distribution_points }, name }: CaProfile) =>
  Effect.gen(function*() {
    const { count, lastEnd } = yield* withRecords(
      Progress.run({ title: "Reading certificates", total: undefined }, (report) => sharedUrls(name, report))
    )
    if (count > 0) {
      return yield* cannot(
        `${count} valid certificate(s) of profile ${name} have a URL without {issuer}, the last until ${
          rfc3339(lastEnd)
        }: ` +
          "from the change on it would lead to the list of the new CA, which verifiers refuse for them. Put {issuer} " +
          "into signer.local_ca.crl_distribution_points and wait for that, or pass --lists-mixed."
      )
    }
    if (crl_distribution_points.some((url) => hasSharedUrl(name, url))) {
      return yield* cannot(
        "A URL of signer.local_ca.crl_distribution_points has no {issuer}, so that certificates would lead to the list " +
          "of another CA after the change. Write {issuer} at its end, or pass --lists-mixed."
      )
    }
  })

/** Returns the name of a CA that is made of its file, or undefined if that is no name. */
const nameOf = (path: string): string | undefined => {
  const name = basename(path).replace(/\.[^.]*$/, "").toLowerCase().replaceAll(/[^a-z0-9-]+/g, "-")
  return caNameFault(name) === undefined ? name : undefined
}

/** Returns the epoch second at which the new CA is to begin, rounded up to a minute: by default in a day. */
const timeOf = (at: string | undefined) =>
  Effect.gen(function*() {
    const now = yield* currentSeconds
    if (at === undefined) return Math.ceil((now + daySeconds) / 60) * 60
    const time = parseRfc3339(at)
    if (time === undefined) return yield* new CommandFailed({ code: 2, message: `--at: ${at} is no RFC 3339 time.` })
    return time > now ? time : yield* cannot(
      `--at: ${at} has passed. A CA begins after the last process has read the configuration.`
    )
  })

interface Rotated {
  readonly to: string
  readonly key: string | undefined
  readonly keyLabel: string | undefined
  readonly passphrasePath: string | undefined
  readonly cross: ReadonlyArray<string>
}

/** Returns the keys of the new CA. Its key is in a file, or in the token of the present CA. */
const keysOf = (rotated: Rotated, { key_source, pkcs11, transit }: LocalCaSettings, from: number) =>
  Effect.gen(function*() {
    const { cross, key, keyLabel, passphrasePath, to } = rotated
    if (keyLabel !== undefined && key !== undefined) {
      return yield* new CommandFailed({ code: 2, message: "--key and --key-label exclude each other." })
    }
    if (keyLabel !== undefined && key_source === "file") {
      return yield* cannot("--key-label: the key of the present CA is in a file, so there is no token to look into.")
    }
    const usual: OtherCaText = {
      cert_path: yield* fromHere(to),
      ...cross.length === 0 ? {} : { cross_cert_paths: yield* Effect.forEach(cross, fromHere) },
      state: "waiting",
      from: rfc3339(from)
    }
    if (keyLabel === undefined) {
      return {
        ...usual,
        key_path: yield* fromHere(key ?? `${to.replace(/\.[^./]*$/, "")}.key`),
        ...passphrasePath === undefined ? {} : { key_passphrase_file: yield* fromHere(passphrasePath) }
      }
    }
    if (key_source === "transit") {
      const { address, ca_path, mount, namespace, token_file } = transit
      const optional = Object.fromEntries(Object.entries({ ca_path, namespace }).filter(([, value]) => value !== ""))
      return { ...usual, key_source, transit: { address, mount, key: keyLabel, token_file, ...optional } }
    }
    const { module_path, pin_file, slot_id, token_label } = pkcs11
    const token = slot_id < 0 ? { token_label } : { slot_id }
    return { ...usual, key_source: "pkcs11" as const, pkcs11: { module_path, ...token, key_label: keyLabel, pin_file } }
  })

/** `ca rotate`: puts a waiting CA beside the one that issues. */
export const rotateCommand = command(
  "rotate",
  "Make another CA the next one of a profile: at its time every process issues with it, and the former CA only signs its list. Prints what has to stand in the configuration. Example: acme-svc ca rotate --to ca2.pem --at 2027-03-01T06:00:00Z. Exit codes: 0, 1, 2, 3.",
  {
    to: neededText("to", "The certificate of the next CA, PEM, followed by its chain."),
    profile: profileFlag,
    name: optionalText("name", "The name of the CA in the configuration. Without it, the name of its file."),
    key: optionalText("key", "Its key, PEM. Without it, the file beside the certificate that ends with .key."),
    keyLabel: optionalText(
      "key-label",
      "The label of its key in the token of the present CA, or the name of its key in the Transit engine."
    ),
    passphrasePath: optionalText("passphrase-path", "The file with the passphrase of its key, for the configuration."),
    cross: repeatedFlag("cross", "path").pipe(
      Flag.mapEffect((files) =>
        files.every((file) => file !== "" && hiddenIn(file) === undefined)
          ? Effect.succeed(files)
          : Effect.fail(refusal("--cross takes the name of a file."))
      ),
      Flag.withDescription("A certificate that another CA gave to it, PEM, with its chain. May be given several times.")
    ),
    at: optionalText("at", "When it begins to issue, RFC 3339. Without it, in a day."),
    listsMixed: switchFlag("lists-mixed", "Also if the list of the new CA is served for certificates of the old CA."),
    write: writeFlag,
    json: jsonOption
  },
  ({ at, json, listsMixed, name: given, profile, write: isWritten, ...rotated }) =>
    ofCa(profile, (ca) =>
      Effect.gen(function*() {
        const loaded = yield* Settings.loaded
        const before = yield* textOf(loaded)
        const from = yield* timeOf(at)
        const name = given ?? nameOf(rotated.to)
        if (name === undefined) {
          return yield* new CommandFailed({
            code: 2,
            message: "--name is needed, because the file is no name of a CA."
          })
        }
        const fault = caNameFault(name)
        if (fault !== undefined) return yield* new CommandFailed({ code: 2, message: `--name: ${name} ${fault}.` })
        const known = Object.hasOwn(ca.local_ca.others, name) ? ca.local_ca.others[name] : undefined
        if (known !== undefined) {
          return yield* cannot(
            `Profile ${ca.name} has a CA ${name} already, which is ${known.state}. If this one shall issue, write ` +
              `state = "waiting" and from = "${
                rfc3339(from)
              }" for signer.local_ca.others.${name}. If it is another CA, ` +
              "give it another --name."
          )
        }
        const added = otherCaText(ca.name, name, yield* keysOf(rotated, ca.local_ca, from))
        const after = `${before.trimEnd()}\n\n${added}\n`
        const local_ca = yield* localCaWith(loaded, ca.name, after)
        yield* Effect.mapError(LocalCa.check(local_ca), filesFailed)
        const lasts = issuingAt(casOf(local_ca), from)?.name
        if (lasts !== name) {
          return yield* cannot(`--at: the CA ${lasts ?? ca.name} issues at ${rfc3339(from)} by its own time.`)
        }
        if (!listsMixed) yield* refuseMixedLists(ca)
        if (isWritten) yield* write(loaded, after)
        const object = {
          profile: ca.name,
          name,
          from: rfc3339(from),
          file: loaded.file.path,
          added,
          written: isWritten
        }
        yield* print(json, object, () =>
          [
            `The CA ${name} can issue for profile ${ca.name} from ${rfc3339(from)} on.`,
            isWritten
              ? `Added to ${loaded.file.path}:`
              : `Add this to ${loaded.file.path}, or run this again with --write:`,
            "",
            added,
            "",
            `${reloadHint} Do that on every host before ${
              rfc3339(from)
            }; \`acme-svc crl list\` then shows the CA as waiting.`
          ].join("\n"))
      }))
)

/** `ca retire`: lets a CA that waits, or that has issued, sign only its list. */
export const retireCommand = command(
  "retire",
  "Let another CA of a profile sign only its list. Prints what has to stand in the configuration. Example: acme-svc ca retire ca2 --write. Exit codes: 0, 1, 2, 3.",
  {
    name: Argument.String("name").pipe(Argument.withDescription("The name of the CA in the configuration.")),
    profile: profileFlag,
    write: writeFlag,
    json: jsonOption
  },
  ({ json, name, profile, write: isWritten }) =>
    ofCa(profile, (ca) =>
      Effect.gen(function*() {
        const loaded = yield* Settings.loaded
        const before = yield* textOf(loaded)
        const now = yield* currentSeconds
        const other = ca.local_ca.others[name]
        const known = Object.keys(ca.local_ca.others)
        if (other === undefined) {
          const there = known.length === 0 ? "there is none" : `there is ${known.join(", ")}`
          return yield* cannot(`Profile ${ca.name} has no CA ${name} in signer.local_ca.others; ${there}.`)
        }
        if (other.state === "retired") return yield* cannot(`The CA ${name} is retired already.`)
        if (issuingAt(casOf(ca.local_ca), now)?.name === name) {
          return yield* cannot(
            `The CA ${name} issues now. Let another CA take its place first (\`acme-svc ca rotate\`); this one is then ` +
              "retired by itself."
          )
        }
        const after = retiredIn(before, ca.name, name)
        const changed = after === undefined ? undefined : yield* localCaWith(loaded, ca.name, after)
        const isRight = changed?.others[name]?.state === "retired"
        const line = `state = "retired" and no from, for signer.local_ca.others.${name}`
        if (after === undefined || !isRight) {
          return yield* cannot(`Write ${line} where the CA is configured; this command cannot change that.`)
        }
        if (isWritten) yield* write(loaded, after)
        const object = { profile: ca.name, name, file: loaded.file.path, written: isWritten }
        yield* print(
          json,
          object,
          () =>
            `${isWritten ? "Wrote" : "Write"} ${line}, ${isWritten ? "to" : "into"} ${loaded.file.path}. ${reloadHint}`
        )
      }))
)

import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Entropy } from "../../crypto/Entropy.ts"
import { Resolver } from "../../engine/net/Resolver.ts"
import * as upstream from "../../operations/operator/Upstream.ts"
import * as changes from "../../operations/operator/UpstreamChanges.ts"
import { hmacKeyOf } from "../../services/signing/relay/Relay.ts"
import { withoutStop } from "../../services/signing/relay/UpstreamAccount.ts"
import { contactUri, hmacKey } from "../../settings/AcmeForms.ts"
import type { Loaded } from "../../settings/Load.ts"
import { renderDetail } from "../../surfaces/cli/Detail.ts"
import { upstreamOrderActs } from "../../surfaces/operator/acts/UpstreamOrderActs.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { Operator } from "../CommandOperator.ts"
import * as Graph from "../Graph.ts"
import { Host } from "../Host.ts"
import * as Logging from "../Logging.ts"
import { namedProfile } from "../NamedProfile.ts"
import { withRecordsAndConfig } from "../Records.ts"
import { Settings } from "../Settings.ts"
import { actCommand } from "./ActCommand.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, optionalText, refusal, repeatedFlag } from "./Flags.ts"
import { print } from "./Print.ts"
import { readKnownSecret } from "./SecretInput.ts"

const cannot = (message: string) => new CommandFailed({ code: 3, message })

const refused = {
  NotRelaying: ({ profile }: upstream.NotRelaying) => cannot(`Profile ${profile} does not relay to an upstream.`),
  AccountRefused: ({ detail, keyPath, kidPath, url }: upstream.AccountRefused) =>
    cannot(
      `The upstream refuses the account ${url} of ${kidPath}: ${
        withoutStop(detail)
      }. Ask its operator why; to create ` +
        `another account, move ${keyPath} and ${kidPath} away and run this command again.`
    ),
  AccountUnusable: ({ detail, mayPass }: { readonly detail: string; readonly mayPass: boolean }) =>
    new CommandFailed({ code: mayPass ? 1 : 3, message: detail }),
  UpstreamRefused: ({ detail }: { readonly detail: string }) => cannot(`The upstream refused: ${withoutStop(detail)}.`),
  UpstreamUnavailable: ({ detail, status }: { readonly detail: string; readonly status: number | undefined }) =>
    new CommandFailed({
      code: 1,
      message: status === undefined
        ? `The upstream does not answer: ${withoutStop(detail)}.`
        : `The upstream fails, with status ${status}: ${withoutStop(detail)}.`
    })
}

const changed = {
  NotRelaying: refused.NotRelaying,
  AccountUnusable: refused.AccountUnusable,
  UpstreamRefused: refused.UpstreamRefused,
  UpstreamUnavailable: refused.UpstreamUnavailable,
  NotRegistered: ({ profile }: changes.NotRegistered) =>
    cannot(`Profile ${profile} has no account at its upstream; \`acme-svc upstream register\` creates one.`)
}

const profileOption = optionalText("profile", "The profile. Needed if there are several.")
const told = {
  absent: (url: string) => `Registered: ${url}`,
  known: (url: string) => `The account is registered already, and the upstream knows it: ${url}`,
  lost: (url: string) => `Registered again, because the upstream no longer knew the account: ${url}`
} as const

/** Reads the secret of a credential. The secret is never an argument, and a terminal does not show it. */
const secretOf = (file: string | undefined) =>
  Effect.filterOrFail(
    Effect.map(
      file === undefined ? readKnownSecret("HMAC key", file) : readKnownSecret("eab-hmac-key", file),
      (text) => text.trim()
    ),
    (text) => text !== "" && hmacKey.fault(text) === undefined,
    () => cannot("The HMAC key is neither base64url nor base64.")
  )

const show = command(
  "show",
  "Show a relay's account. Example: acme-svc upstream show --profile web. Exit codes: 0, 2, 3.",
  { profile: profileOption, json: jsonOption },
  ({ json, profile }) =>
    Effect.gen(function*() {
      const loaded = yield* Settings.loaded
      const object = yield* Effect.catchTags(upstream.show(yield* namedProfile(loaded, profile)), {
        NotRelaying: refused.NotRelaying,
        AccountUnusable: refused.AccountUnusable
      })
      yield* print(json, object, () => renderDetail(object))
    })
)

const worldOf = ({ config }: Loaded) =>
  Effect.map(
    Host,
    ({ process }) =>
      Layer.merge(Entropy.layer, Layer.provide(Graph.web(config, process.version), Resolver.layer(config.dns.resolver)))
  )

const register = command(
  "register",
  "Create a relay's account at its upstream. Example: acme-svc upstream register --profile web --eab-kid KID. Exit codes: 0, 1, 2, 3.",
  {
    profile: profileOption,
    kid: optionalText("eab-kid", "Key identifier of the upstream's credential."),
    file: optionalText(
      "eab-hmac-key-file",
      "File with its key, or - for standard input. Without it, the key is typed or read from standard input."
    )
  },
  ({ file, kid, profile }) =>
    Effect.gen(function*() {
      const loaded = yield* Settings.loaded
      if (kid === undefined && file !== undefined) {
        return yield* new CommandFailed({ code: 2, message: "--eab-hmac-key-file requires --eab-kid." })
      }
      const found = yield* namedProfile(loaded, profile)
      const credential = kid === undefined
        ? undefined
        : { kid, hmacKey: Redacted.make(hmacKeyOf(yield* secretOf(file))) }
      const world = yield* worldOf(loaded)
      const { accountUrl, was } = yield* upstream.registerAt(found, credential).pipe(
        Effect.catchTags(refused),
        Effect.provide(world),
        Effect.provide(Logging.quiet(loaded))
      )
      yield* Console.log(told[was](accountUrl))
    })
)

const rollover = command(
  "rollover",
  "Give a relay's account a new key. Example: acme-svc upstream rollover --profile web. Exit codes: 0, 1, 2, 3.",
  { profile: profileOption, json: jsonOption },
  ({ json, profile }) =>
    withRecordsAndConfig(Effect.fnUntraced(function*(loaded) {
      const found = yield* namedProfile(loaded, profile)
      const object = yield* changes.rollOver(yield* Operator, found).pipe(
        Effect.catchTags(changed),
        Effect.provide(yield* worldOf(loaded))
      )
      yield* print(json, object, () => renderDetail(object))
    }))
)

const contact = command(
  "contact",
  "Set the contacts of a relay's account. Example: acme-svc upstream contact --profile web. Exit codes: 0, 1, 2, 3.",
  {
    profile: profileOption,
    contact: repeatedFlag("contact", "uri").pipe(
      Flag.mapEffect((given) => {
        const fault = given.map((one) => contactUri.fault(one)).find((one) => one !== undefined)
        return fault === undefined ? Effect.succeed(given) : Effect.fail(refusal(`--contact: ${fault}.`))
      }),
      Flag.withDescription("A contact, such as mailto:pki@example.org. Without any, those of signer.relay.contact.")
    ),
    json: jsonOption
  },
  ({ contact, json, profile }) =>
    withRecordsAndConfig(Effect.fnUntraced(function*(loaded) {
      const found = yield* namedProfile(loaded, profile)
      const object = yield* changes.setContact(yield* Operator, found, contact).pipe(
        Effect.catchTags(changed),
        Effect.provide(yield* worldOf(loaded))
      )
      yield* print(json, object, () => renderDetail({ ...object, contact: object.contact.join(" ") }))
    }))
)

/** `upstream`: a relay's account at its upstream, and its orders. */
export const upstreamCommand = actCommand(upstreamOrderActs, "upstream", {
  upstream: [show, register, rollover, contact]
})

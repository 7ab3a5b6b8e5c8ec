import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Entropy } from "../../crypto/Entropy.ts"
import { issuingAt } from "../../domain/IssuerState.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Web } from "../../engine/net/Web.ts"
import { sharedSeconds } from "../../engine/queue/SharedClock.ts"
import { CaFilesUnusable, check as checkFiles, generateIfAbsent, isSuppliedRoot } from "./CaFiles.ts"
import type { ConfiguredCa, LocalCaSettings } from "./ConfiguredCas.ts"
import { casOf } from "./ConfiguredCas.ts"
import { readCrosses } from "./CrossCertificates.ts"
import * as IssuedCrl from "./IssuedCrl.ts"
import { checkRemote, isRemote } from "./RemoteCa.ts"
import type { DirectSigner } from "./Signer.ts"
import { SigningFailed } from "./Signer.ts"
import type { SigningIssuer } from "./SigningIssuer.ts"
import * as signingIssuer from "./SigningIssuer.ts"

/*
 * The signer of a profile with CAs of its own (docs/contribute/decisions/local-ca.md). One of them issues; all of them
 * publish lists (docs/contribute/decisions/rotation.md).
 */

/** Refuses two CAs of a section with the same key, because a key can be in one state only. */
const refuseSameKey = Effect.fnUntraced(
  function*(cas: ReadonlyArray<{ readonly name: string | undefined; readonly id: string }>) {
    for (const [index, { id, name }] of cas.entries()) {
      const earlier = cas.slice(0, index).find((other) => other.id === id)
      if (earlier === undefined) continue
      const other = earlier.name === undefined ? "signer.local_ca" : `signer.local_ca.others.${earlier.name}`
      return yield* new CaFilesUnusable({
        detail: `signer.local_ca.others.${name ?? ""}: the CA has the same key as the CA of ${other}.`
      })
    }
  }
)

const checkOne = Effect.fnUntraced(function*({ name, settings }: ConfiguredCa) {
  const ca = yield* isRemote(settings) ? checkRemote(settings) : checkFiles(settings)
  if (ca === undefined && name !== undefined) {
    const detail = `signer.local_ca.others.${name}: ${settings.cert_path} and ${settings.key_path} do not exist.`
    return yield* new CaFilesUnusable({ detail, isOutside: true })
  }
  const detail = ca && (yield* IssuedCrl.make(settings.crl_path, ca.publicKey).trouble)
  if (detail !== undefined) return yield* new CaFilesUnusable({ detail, isOutside: true, isLoaded: true })
  const [fault] = ca === undefined ? [] : (yield* readCrosses(settings, ca)).faults
  if (fault !== undefined) return yield* new CaFilesUnusable({ detail: fault, isOutside: true })
  return ca
})

/**
 * Refuses what {@link make} would refuse, and also a CA that is not valid now or whose lists have stopped. A CA of
 * `others` that has ended is no fault. Changes nothing.
 */
export const check = (settings: LocalCaSettings): Effect.Effect<void, CaFilesUnusable> =>
  Effect.gen(function*() {
    const found: Array<{ readonly name: string | undefined; readonly id: string }> = []
    for (const one of casOf(settings)) {
      const ca = yield* one.from === undefined
        ? Effect.catchIf(checkOne(one), ({ isLoaded }) => isLoaded === true, () => Effect.succeed(undefined))
        : checkOne(one)
      if (ca !== undefined) found.push({ name: one.name, id: ca.issuerId })
    }
    yield* refuseSameKey(found)
  })

/** A CA of the section that could be loaded. */
type Loaded = ConfiguredCa & SigningIssuer

/**
 * Makes the CAs of `others`. A CA that cannot be loaded is left out, because the CA that issues must not depend on it.
 */
const makeOthers = Effect.fnUntraced(function*(others: ReadonlyArray<ConfiguredCa>) {
  const made: Array<Loaded> = []
  const failures = new Map<string, string>()
  for (const one of others) {
    const ended = yield* Effect.result(signingIssuer.make(one.settings))
    if (Result.isSuccess(ended)) {
      made.push({ ...one, ...ended.success })
      continue
    }
    const { detail } = ended.failure
    failures.set(one.name ?? "", detail)
    yield* emit("local_ca_other_unusable", { name: one.name ?? "", error: detail })
  }
  return { made, failures }
})

/**
 * Makes the signer of a section. If the first CA does not exist, makes that CA first. The signer issues with the CA
 * whose time has come last.
 */
export const make = (settings: LocalCaSettings): Effect.Effect<DirectSigner, CaFilesUnusable, Entropy | Web> =>
  Effect.gen(function*() {
    yield* generateIfAbsent(settings)
    const [one, ...rest] = casOf(settings)
    const first = yield* signingIssuer.make(settings)
    if (isSuppliedRoot(first.ca, settings)) yield* emit("local_ca_is_root", { issuer: first.ca.issuerId })
    const { failures, made } = yield* makeOthers(rest)
    const all: ReadonlyArray<Loaded> = [...one === undefined ? [] : [{ ...one, ...first }], ...made]
    yield* refuseSameKey(all.map(({ ca, name }) => ({ name, id: ca.issuerId })))
    const configured = casOf(settings)
    /** The CA that issues now. Fails if it could not be loaded: an older CA must not take its place. */
    const issuing = Effect.gen(function*() {
      const name = issuingAt(configured, yield* sharedSeconds)?.name
      return all.find((ca) => ca.name === name) ??
        (yield* new CaFilesUnusable({ detail: failures.get(name ?? "") ?? "no CA issues now" }))
    })
    return {
      issue: (request) =>
        Effect.flatMap(
          Effect.mapError(issuing, ({ detail }) => new SigningFailed({ cause: "signer_failed", detail, isAway: true })),
          ({ issue }) => issue(request)
        ),
      trouble: Effect.matchEffect(issuing, {
        onFailure: ({ detail }) => Effect.succeed<string | undefined>(detail),
        onSuccess: ({ trouble }) => trouble
      }),
      issuing: Effect.match(issuing, { onFailure: () => undefined, onSuccess: ({ ca }) => ca.issuerId }),
      crls: all.map(({ crl }) => crl)
    }
  })

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import type { ChallengeType } from "../../domain/Challenge.ts"
import { provesDns } from "../../domain/Challenge.ts"
import { emit } from "../../domain/words/Log.ts"
import { AlpnPeer } from "../../engine/net/AlpnPeer.ts"
import { HttpGet } from "../../engine/net/HttpGet.ts"
import { Resolver } from "../../engine/net/Resolver.ts"
import { oncePer } from "../../engine/OncePer.ts"
import { lifeMillis } from "../../engine/Time.ts"
import type { ChallengeAttempt, ChallengePolicy, ChallengePostponed, Waiting } from "./Attempt.ts"
import { ChallengeRefused, stalled } from "./Attempt.ts"
import { makeDns01 } from "./Dns01.ts"
import { makeHttp01 } from "./Http01.ts"
import { makeTlsAlpn01 } from "./TlsAlpn01.ts"

/** The addresses that always reach this host itself, whatever its listeners are. */
const loopback = ["127.0.0.0/8", "::1/128"]

/** Returns the settings of an attempt. The service's own host is denied, unless the settings allow it. */
const shielding = (own: ReadonlyArray<string>) => (challenge: ChallengePolicy): ChallengePolicy =>
  challenge.allow_loopback
    ? challenge
    : { ...challenge, denied_addresses: [...challenge.denied_addresses, ...loopback, ...own] }

const make = Effect.fnUntraced(function*(own: ReadonlyArray<string>) {
  const resolver = yield* Resolver
  const checks: {
    readonly [T in ChallengeType]: (
      attempt: ChallengeAttempt,
      waiting: Waiting
    ) => Effect.Effect<void, ChallengeRefused | ChallengePostponed>
  } = {
    "http-01": makeHttp01(resolver, yield* HttpGet),
    "dns-01": makeDns01(resolver),
    "tls-alpn-01": makeTlsAlpn01(resolver, yield* AlpnPeer)
  }

  const shielded = oncePer(shielding(own))

  const validate = Effect.fnUntraced(function*(attempt: ChallengeAttempt) {
    const { challenge, identifier, type } = attempt
    const started = yield* lifeMillis
    const waiting = yield* Ref.make(`the look-up for ${identifier} was not answered`)
    const late = Effect.flatMap(
      Effect.all([lifeMillis, Ref.get(waiting)]),
      ([life, waited]): Effect.Effect<never, ChallengeRefused | ChallengePostponed> =>
        stalled(life - started - challenge.timeout_ms) ??
          new ChallengeRefused({
            error: provesDns(type) ? "dns" : "connection",
            reason: "timeout",
            detail: `no verdict within ${challenge.timeout_ms} ms: ${waited}`
          })
    )
    yield* checks[type]({ ...attempt, challenge: shielded(challenge) }, waiting).pipe(
      Effect.timeoutOption(challenge.timeout_ms),
      Effect.flatMap((verdict) => Option.isSome(verdict) ? Effect.void : late),
      Effect.tapErrorTag("ChallengeRefused", ({ detail, reason }) =>
        reason === "timeout"
          ? Effect.flatMap(
            Effect.all([lifeMillis, Ref.get(waiting)]),
            ([now, error]) => emit("challenge_validation_timeout", { identifier, elapsed_ms: now - started, error })
          )
          : emit("challenge_validation_failed", { identifier, reason, error: detail }))
    )
  })

  return Validator.of({ validate })
})

/**
 * Checks that a client controls a name, and logs the attempt. The caller decides what the verdict means and stores it.
 */
export class Validator extends Context.Service<Validator, {
  /**
   * Runs one check once, within challenge.timeout_ms. Success means that control is proved. `ChallengeRefused` is a
   * verdict too, and never a reason to try again. `ChallengePostponed` is not a verdict. After an interruption, no
   * socket and no query stays open.
   */
  readonly validate: (attempt: ChallengeAttempt) => Effect.Effect<void, ChallengeRefused | ChallengePostponed>
}>()("acme/services/validation/Validator") {
  /**
   * Makes checks over the network, through `Resolver`, `HttpGet` and `AlpnPeer`. `own` lists addresses of this host.
   */
  static readonly layer = (
    own: ReadonlyArray<string> = []
  ): Layer.Layer<Validator, never, Resolver | HttpGet | AlpnPeer> => Layer.effect(this, make(own))

  /** Makes no checks. A function decides every attempt. */
  static readonly layerScripted = (
    script: (attempt: ChallengeAttempt) => Effect.Effect<void, ChallengeRefused | ChallengePostponed>
  ): Layer.Layer<Validator> => Layer.succeed(this, { validate: script })
}

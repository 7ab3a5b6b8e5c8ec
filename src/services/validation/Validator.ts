import { Clock, Context, Effect, Layer, Ref } from "effect"
import type { ChallengeType } from "../../domain/Challenge.ts"
import { AlpnPeer } from "../../kernel/net/AlpnPeer.ts"
import { HttpGet } from "../../kernel/net/HttpGet.ts"
import { Resolver } from "../../kernel/net/Resolver.ts"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import type { ChallengeAttempt, ChallengePolicy, ChallengePostponed, Waiting } from "./Attempt.ts"
import { ChallengeRefused } from "./Attempt.ts"
import { makeDns01 } from "./Dns01.ts"
import { makeHttp01 } from "./Http01.ts"
import { makeTlsAlpn01 } from "./TlsAlpn01.ts"

/** What reaches this very host, whatever it listens on. */
const loopback = ["127.0.0.0/8", "::1/128"]

/** The policy of an attempt with the service's own host denied, unless it is allowed. */
const shielded = (challenge: ChallengePolicy, own: ReadonlyArray<string>): ChallengePolicy =>
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

  const validate = Effect.fnUntraced(function*(attempt: ChallengeAttempt) {
    const { challenge, identifier, type } = attempt
    const started = yield* Clock.currentTimeMillis
    const waiting = yield* Ref.make(`the look-up for ${identifier} was not answered`)
    yield* checks[type]({ ...attempt, challenge: shielded(challenge, own) }, waiting).pipe(
      Effect.timeoutFail({
        duration: challenge.timeout_ms,
        onTimeout: () =>
          new ChallengeRefused({
            error: type === "dns-01" ? "dns" : "connection",
            reason: "timeout",
            detail: `no verdict within ${challenge.timeout_ms} ms`
          })
      }),
      Effect.tapErrorTag("ChallengeRefused", ({ detail, reason }) =>
        reason === "timeout"
          ? Effect.flatMap(
            Effect.all([Clock.currentTimeMillis, waiting]),
            ([now, error]) => emit("challenge_validation_timeout", { identifier, elapsed_ms: now - started, error })
          )
          : emit("challenge_validation_failed", { identifier, reason, error: detail }))
    )
  })

  return Validator.of({ validate })
})

/** Proof that a client controls a name. Writes the log of the attempt; verdicts and records are its caller's. */
export class Validator extends Context.Tag("acme/services/validation/Validator")<Validator, {
  /**
   * Runs one check under challenge.timeout_ms, once. Success is proof; `ChallengeRefused` is a verdict too, never a
   * reason to try again, and `ChallengePostponed` is none. Interruption leaves no socket and no query behind.
   */
  readonly validate: (attempt: ChallengeAttempt) => Effect.Effect<void, ChallengeRefused | ChallengePostponed>
}>() {
  /** Checks over the network as `Resolver`, `HttpGet` and `AlpnPeer` reach it; `own` are addresses of this host. */
  static readonly layer = (
    own: ReadonlyArray<string> = []
  ): Layer.Layer<Validator, never, Resolver | HttpGet | AlpnPeer> => Layer.effect(this, make(own))

  /** Decides by a function, which sees every attempt. */
  static readonly layerScripted = (
    script: (attempt: ChallengeAttempt) => Effect.Effect<void, ChallengeRefused | ChallengePostponed>
  ): Layer.Layer<Validator> => Layer.succeed(this, { validate: script })
}

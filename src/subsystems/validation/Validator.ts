import { Clock, Context, Effect, Layer } from "effect"
import { emit } from "../log/EventLog.ts"
import { HttpGet } from "../outside/HttpGet.ts"
import { Resolver } from "../outside/Resolver.ts"
import { ChallengeRefused } from "./Attempt.ts"
import type { Http01Attempt } from "./Http01.ts"
import { makeHttp01 } from "./Http01.ts"

/** One challenge to check; told apart by `type`. */
export type ChallengeAttempt = Http01Attempt

const make = Effect.gen(function*() {
  const http01 = makeHttp01(yield* Resolver, yield* HttpGet)

  const validate = Effect.fnUntraced(function*(attempt: ChallengeAttempt) {
    const { challenge, identifier } = attempt
    const started = yield* Clock.currentTimeMillis
    yield* http01(attempt).pipe(
      Effect.timeoutFail({
        duration: challenge.timeout_ms,
        onTimeout: () =>
          new ChallengeRefused({
            error: "connection",
            reason: "timeout",
            detail: `no verdict within ${challenge.timeout_ms} ms`
          })
      }),
      Effect.tapError(({ detail, reason }) =>
        reason === "timeout"
          ? Effect.flatMap(Clock.currentTimeMillis, (now) =>
            emit("challenge_validation_timeout", { identifier, elapsed_ms: now - started }))
          : emit("challenge_validation_failed", { identifier, reason, error: detail })
      )
    )
  })

  return Validator.of({ validate })
})

/** Proof that a client controls a name. Writes the log of the attempt; verdicts and records are its caller's. */
export class Validator extends Context.Tag("acme/subsystems/validation/Validator")<Validator, {
  /**
   * Runs one check under challenge.timeout_ms, once. Success is proof; `ChallengeRefused` is a verdict too, never a
   * reason to try again. Interruption leaves no socket and no query behind.
   */
  readonly validate: (attempt: ChallengeAttempt) => Effect.Effect<void, ChallengeRefused>
}>() {
  /** Checks over the network as `Resolver` and `HttpGet` reach it. */
  static readonly layer: Layer.Layer<Validator, never, Resolver | HttpGet> = Layer.effect(this, make)

  /** Decides by a function, which sees every attempt. */
  static readonly layerScripted = (
    script: (attempt: ChallengeAttempt) => Effect.Effect<void, ChallengeRefused>
  ): Layer.Layer<Validator> => Layer.succeed(this, { validate: script })
}

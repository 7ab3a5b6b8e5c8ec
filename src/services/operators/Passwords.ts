import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import { RateLimited } from "../../domain/OperatorError.ts"
import { Entropy } from "../../pki/Entropy.ts"
import type { Derive, PasswordHash } from "../../pki/Password.ts"
import {
  derive as pbkdf2,
  isHashOf,
  parsePasswordHash,
  printPasswordHash,
  saltSize,
  unmatchable,
  unmatchableSize
} from "../../pki/Password.ts"

/** The result of a comparison of a password with a stored hash. */
export type Verdict =
  /** `isWeak`: the hash has fewer iterations than new ones. */
  | { readonly _tag: "Right"; readonly isWeak: boolean }
  | { readonly _tag: "Wrong" }
  /** The stored text is not a hash that this service writes. */
  | { readonly _tag: "Unreadable" }

/** How passwords are hashed. An absent setting has the value of the service. */
export interface PasswordSettings {
  readonly iterations?: number
  readonly recoveryIterations?: number
  readonly derive?: Derive
}

const atOnce = 2
const mostWaiting = 32
const retrySeconds = 1

/**
 * Hashes of passwords and recovery codes. At most two are computed at once and 32 may wait, so that sign-ins leave the
 * thread pool to others. Any further request is told to try again.
 */
export class Passwords extends Context.Service<Passwords, {
  readonly hash: (password: string) => Effect.Effect<string, RateLimited>
  /**
   * Compares a password with a stored hash or, if there is none, with a hash that no password has. Both cost the same.
   */
  readonly verify: (password: string, stored: string | undefined) => Effect.Effect<Verdict, RateLimited>
  /** Hashes codes, each with its own salt. They are random, so they need less work than a password. */
  readonly hashCodes: (codes: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, RateLimited>
  /**
   * Finds the hash of a code among some hashes. All of them are compared, so that the time does not show which one it
   * was.
   */
  readonly findCode: <A extends { readonly codeHash: string }>(
    code: string,
    among: ReadonlyArray<A>
  ) => Effect.Effect<A | undefined, RateLimited>
}>()("acme/services/operators/Passwords") {
  static readonly layer = (
    { derive = pbkdf2, iterations = 600_000, recoveryIterations = 10_000 }: PasswordSettings = {}
  ): Layer.Layer<Passwords, never, Entropy> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const entropy = yield* Entropy
        const semaphore = yield* Semaphore.make(atOnce)
        const nobodys = unmatchable(yield* entropy.bytes(unmatchableSize), iterations)
        let present = 0

        const inTurn = <A>(self: Effect.Effect<A>): Effect.Effect<A, RateLimited> =>
          Effect.suspend(() => {
            if (present >= atOnce + mostWaiting) return new RateLimited({ retryAfter: retrySeconds })
            present++
            return Effect.ensuring(semaphore.withPermits(1)(self), Effect.sync(() => void present--))
          })

        const hashed = Effect.fnUntraced(function*(password: string, rounds: number) {
          const salt = yield* entropy.bytes(saltSize)
          return printPasswordHash({ iterations: rounds, salt, hash: yield* derive(password, salt, rounds) })
        })

        // If a hash of fewer iterations does not match, the rest of the iterations is done too. Otherwise the time
        // would show that the name exists.
        const compared = Effect.fnUntraced(function*(password: string, stored: PasswordHash) {
          const isRight = isHashOf(yield* derive(password, stored.salt, stored.iterations), stored)
          const missing = iterations - stored.iterations
          if (!isRight && missing > 0) yield* derive(password, nobodys.salt, missing)
          return isRight
        })

        const verify = (password: string, stored: string | undefined): Effect.Effect<Verdict, RateLimited> =>
          Effect.suspend(() => {
            const read = stored === undefined ? nobodys : parsePasswordHash(stored)
            return Effect.map(inTurn(compared(password, read ?? nobodys)), (isRight): Verdict =>
              read === undefined
                ? { _tag: "Unreadable" }
                // The hash that no password has never lets anybody in, whatever the comparison says.
                : isRight && read !== nobodys
                ? { _tag: "Right", isWeak: read.iterations < iterations }
                : { _tag: "Wrong" })
          })

        const findCode = <A extends { readonly codeHash: string }>(code: string, among: ReadonlyArray<A>) =>
          inTurn(Effect.gen(function*() {
            let found: A | undefined
            for (const one of among) {
              const stored = parsePasswordHash(one.codeHash)
              if (stored !== undefined && isHashOf(yield* derive(code, stored.salt, stored.iterations), stored)) {
                found = one
              }
            }
            return found
          }))

        return {
          hash: (password) => inTurn(hashed(password, iterations)),
          verify,
          hashCodes: (codes) => inTurn(Effect.forEach(codes, (code) => hashed(code, recoveryIterations))),
          findCode
        }
      })
    )
}

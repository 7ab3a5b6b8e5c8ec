import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Entropy } from "../../crypto/Entropy.ts"
import type { Derive, PasswordHash } from "../../crypto/PasswordHash.ts"
import {
  derive as pbkdf2,
  isHashOf,
  parsePasswordHash,
  printPasswordHash,
  saltSize,
  unmatchable,
  unmatchableSize
} from "../../crypto/PasswordHash.ts"
import { RateLimited } from "../../domain/OperatorError.ts"
import { currentPeer, makeFairSemaphore } from "../../engine/net/FairSemaphore.ts"

/** The result of comparing a password with a stored hash. */
export type Verdict =
  /** `isWeak` means that the hash has fewer iterations than new hashes. */
  | { readonly _tag: "Right"; readonly isWeak: boolean }
  | { readonly _tag: "Wrong" }
  /** The stored text is not a hash that this service writes. */
  | { readonly _tag: "Unreadable" }

/** How passwords are hashed. If a setting is absent, the service's usual value is used. */
export interface PasswordSettings {
  readonly iterations?: number
  readonly recoveryIterations?: number
  readonly derive?: Derive
}

const retrySeconds = 1

/**
 * Makes a queue for hashes. If too many hashes are waiting, another hash is refused, and the caller may try again later
 * (docs/contribute/decisions/shares.md).
 */
const makeHashQueue = (atOnce: number, mostWaiting: number) => {
  const { takeUnlessFull, underWay } = makeFairSemaphore(atOnce, { mostWaiting })
  const refused = Effect.flatMap(
    underWay,
    (others) => new RateLimited({ retryAfter: retrySeconds, isOwnDoing: others > 0 })
  )
  return {
    /** The number of hashes of the current peer, both those that wait and those that are being computed. */
    underWay,
    // A waiting hash starts as soon as another hash has ended, but other work of the event loop is done first.
    inTurn: <A>(self: Effect.Effect<A>): Effect.Effect<A, RateLimited> =>
      takeUnlessFull(Effect.andThen(Effect.yieldNow, self), refused)
  }
}

/**
 * Hashes passwords and recovery codes in two queues. Together, the queues leave threads of the pool for other work. The
 * first queue is for sign-ins: two hashes are computed at once and 32 may wait, shared among addresses. The second
 * queue is for operators who have already proved who they are: one hash is computed at once and 16 may wait, shared
 * among operators. So strangers, however many, cannot delay an operator with a session. `operator` is the name of the
 * operator who sent the request. Without `operator`, the request counts as a client's request.
 */
export class Passwords extends Context.Service<Passwords, {
  readonly hash: (password: string, operator?: string) => Effect.Effect<string, RateLimited>
  /**
   * Compares a password with a stored hash. If there is no stored hash, compares the password with a hash that matches
   * no password. Both comparisons cost the same.
   */
  readonly verify: (
    password: string,
    stored: string | undefined,
    operator?: string
  ) => Effect.Effect<Verdict, RateLimited>
  /** Returns how many passwords of the current client are being compared or wait for their comparison. */
  readonly underWay: Effect.Effect<number>
  /**
   * Hashes codes, each with a salt of its own. Codes are random, so their hashes need less work than the hash of a
   * password.
   */
  readonly hashCodes: (
    codes: ReadonlyArray<string>,
    operator: string
  ) => Effect.Effect<ReadonlyArray<string>, RateLimited>
  /**
   * Finds the hash of a code among several hashes. Compares the code with all of them, so that the duration does not
   * reveal which hash matched.
   */
  readonly findCode: <A extends { readonly codeHash: string }>(
    code: string,
    among: ReadonlyArray<A>,
    operator: string
  ) => Effect.Effect<A | undefined, RateLimited>
}>()("acme/services/operators/Passwords") {
  static readonly layer = (
    { derive = pbkdf2, iterations = 600_000, recoveryIterations = 10_000 }: PasswordSettings = {}
  ): Layer.Layer<Passwords, never, Entropy> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const entropy = yield* Entropy
        const nobodys = unmatchable(yield* entropy.bytes(unmatchableSize), iterations)
        const clients = makeHashQueue(2, 32)
        const operators = makeHashQueue(1, 16)

        const inTurn = <A>(self: Effect.Effect<A>, operator: string | undefined): Effect.Effect<A, RateLimited> =>
          operator === undefined
            ? clients.inTurn(self)
            : Effect.provideService(operators.inTurn(self), currentPeer, { host: operator, network: operator })

        const hashed = Effect.fnUntraced(function*(password: string, rounds: number) {
          const salt = yield* entropy.bytes(saltSize)
          return printPasswordHash({ iterations: rounds, salt, hash: yield* derive(password, salt, rounds) })
        })

        // If the hash has fewer iterations and does not match, the remaining iterations are done too. Otherwise the
        // duration would reveal that the name exists.
        const compared = Effect.fnUntraced(function*(password: string, stored: PasswordHash) {
          const isRight = isHashOf(yield* derive(password, stored.salt, stored.iterations), stored)
          const missing = iterations - stored.iterations
          if (!isRight && missing > 0) yield* derive(password, nobodys.salt, missing)
          return isRight
        })

        const verify = (
          password: string,
          stored: string | undefined,
          operator?: string
        ): Effect.Effect<Verdict, RateLimited> =>
          Effect.suspend(() => {
            const read = stored === undefined ? nobodys : parsePasswordHash(stored)
            return Effect.map(inTurn(compared(password, read ?? nobodys), operator), (isRight): Verdict =>
              read === undefined
                ? { _tag: "Unreadable" }
                // Whatever the comparison says, the hash that is compared in place of a missing hash never admits
                // anyone.
                : isRight && read !== nobodys
                ? { _tag: "Right", isWeak: read.iterations < iterations }
                : { _tag: "Wrong" })
          })

        const findCode = <A extends { readonly codeHash: string }>(
          code: string,
          among: ReadonlyArray<A>,
          operator: string
        ) =>
          inTurn(
            Effect.gen(function*() {
              let found: A | undefined
              for (const one of among) {
                const stored = parsePasswordHash(one.codeHash)
                if (stored !== undefined && isHashOf(yield* derive(code, stored.salt, stored.iterations), stored)) {
                  found = one
                }
              }
              return found
            }),
            operator
          )

        return {
          hash: (password, operator) => inTurn(hashed(password, iterations), operator),
          verify,
          underWay: clients.underWay,
          hashCodes: (codes, operator) =>
            inTurn(Effect.forEach(codes, (code) => hashed(code, recoveryIterations)), operator),
          findCode
        }
      })
    )
}

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { Entropy, tokenLength } from "../../crypto/Entropy.ts"
import type { Account } from "../../domain/Account.ts"
import type { AccountId } from "../../domain/Id.ts"
import { currentPeer } from "../../engine/net/FairSemaphore.ts"
import type { Peer } from "../../engine/net/Peer.ts"
import { Turns } from "../../engine/net/Turns.ts"
import type { StorageFailed } from "../../engine/sql/Database.ts"
import { Database, failed, transaction } from "../../engine/sql/Database.ts"
import { synced, unsynced } from "../../engine/sql/Synced.ts"
import { currentMillis, millisOf } from "../../engine/Time.ts"
import type { Config } from "../../settings/AppConfig.ts"
import * as nonces from "../../store/NonceRows.ts"
import type { SignedNonce } from "../../store/NonceRows.ts"

/** The outcome for a nonce that a client presented. */
export type Spent = "fresh" | "unknown" | "expired"

/** The outcome for the nonce of a request that an account has signed, and the account as it is now. */
export interface SpentSigned {
  readonly account: Account
  readonly spent: Spent
}

/**
 * Replay protection (RFC 8555 section 6.5). Every nonce is a row. Spending a nonce is a conditional delete, whose
 * result decides which of several requests gets the nonce, even between processes. Rows are inserted in batches in
 * advance, and deleted together with the rows of other waiting requests. A separate commit for each nonce would cost
 * more than the rest of many requests.
 */
export class Nonces extends Context.Service<Nonces, {
  /**
   * Returns a stored nonce that stays fresh for at least nine tenths of its lifetime, or `undefined` if no nonce could
   * be stored.
   */
  readonly issue: Effect.Effect<string | undefined>
  readonly spend: (nonce: string) => Effect.Effect<Spent, StorageFailed>
  /**
   * Spends the nonce of a request whose signature verifies with this key, and reads the account. Returns `undefined`,
   * and spends nothing, if the account no longer exists or now has a different key, or if the nonce cannot be one of
   * ours.
   */
  readonly spendSigned: (request: SignedNonce) => Effect.Effect<SpentSigned | undefined, StorageFailed>
}>()("acme/services/nonce/Nonces") {
  /** Makes the service. It calls `config` each time it is used, because a reload changes the configuration. */
  static readonly layer = (config: () => Pick<Config, "nonce">): Layer.Layer<Nonces, never, Database | Entropy> =>
    Layer.effect(this, make(config))
}

const smallestBatch = 16
const largestBatch = 256
const patienceMillis = 2000

/** The next batch is made when this fraction of the last batch is left, so that no request waits for it. */
const refillsBelow = 1 / 4

const largestSpend = 100
const deadlocksBorne = 3

/** A request that waits for a nonce. */
interface Asking {
  readonly answer: (nonce: string | undefined) => void
}

/** A request that waits for the verdict on its nonce. */
interface Waiting {
  readonly nonce: string
  /** The account that has signed the request. `undefined` if the account has already been read, or if there is none. */
  readonly signed: SignedNonce | undefined
  readonly answer: (verdict: Effect.Effect<Verdict, StorageFailed>) => void
}

/**
 * A verdict on a nonce. The account is absent if none was requested, or if it has changed since the signature was
 * verified.
 */
interface Verdict {
  readonly account: Account | undefined
  readonly spent: Spent
}

/**
 * Returns the account of a request. Other requests in the batch may name the same account with a different profile or
 * key.
 */
const signerIn = (found: ReadonlyMap<AccountId, Account>, { accountId, profile, pubkey }: SignedNonce) => {
  const account = found.get(accountId)
  return account?.profile === profile && pubkey.equals(account.pubkey) ? account : undefined
}

const make = (config: () => Pick<Config, "nonce">) =>
  Effect.gen(function*() {
    const database = yield* Database
    const entropy = yield* Entropy
    const background = yield* FiberSet.make<void>()
    const fork = yield* FiberSet.runtime(background)<never>()

    let ahead: Array<{ readonly value: string; readonly madeAt: number }> = []
    let batch = smallestBatch
    let emptiedAt = 0
    let isRefilling = false
    /** The requests that wait for a nonce. While a request waits, `ahead` is empty. */
    const asking = new Turns<Asking>()

    const store = Effect.gen(function*() {
      const millis = yield* currentMillis
      // If a batch is used up within a second, the next one is twice as large. Otherwise the size shrinks back.
      batch = millis - emptiedAt < 1000 ? Math.min(batch * 2, largestBatch) : Math.max(batch / 2, smallestBatch)
      emptiedAt = millis
      const values = yield* entropy.tokens(batch)
      yield* nonces.insert(values, millis)
      ahead = values.map((value) => ({ value, madeAt: millis })).concat(ahead)
    }).pipe(Effect.provideService(Database, database))

    const take = (now: number): string | undefined => {
      const oldest = now - config().nonce.ttl_seconds * 100
      for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
        if (next.madeAt >= oldest) return next.value
      }
      return undefined
    }

    /**
     * Gives the nonces of a new batch to the requests that wait. More may wait than there are nonces in one batch, so
     * peers have the nonces by turns.
     */
    const handOut = (now: number) => {
      const values: Array<string> = []
      while (values.length < asking.size) {
        const value = take(now)
        if (value === undefined) break
        values.push(value)
      }
      asking.take(values.length).forEach(({ answer }, at) => answer(values[at]))
    }

    /**
     * Starts a refill, unless one runs. The refill outlives the request that started it. If its nonces cannot be
     * stored, the requests that wait get none.
     */
    const refill = (): void => {
      if (isRefilling) return
      isRefilling = true
      fork(Effect.ignore(Effect.onExit(store, (exit) =>
        Effect.map(currentMillis, (now) => {
          isRefilling = false
          if (exit._tag === "Success") handOut(now)
          else asking.take(asking.size).forEach(({ answer }) => answer(undefined))
          if (asking.size > 0) refill()
        }))))
    }

    const waitFor = (peer: Peer | undefined) =>
      Effect.callback<string | undefined>((resume) => {
        const own: Asking = { answer: (value) => resume(Effect.succeed(value)) }
        asking.add(peer, own)
        refill()
        return Effect.sync(() => asking.remove(peer, own))
      })

    const issue = Effect.withFiber<string | undefined>((fiber) => {
      const value = take(millisOf(fiber))
      if (value === undefined) {
        const waited = waitFor(fiber.getRef(currentPeer))
        return Effect.map(Effect.timeoutOption(waited, patienceMillis), Option.getOrUndefined)
      }
      if (ahead.length < batch * refillsBelow) {
        refill()
      }
      return Effect.succeed(value)
    })

    const waiting: Array<Waiting> = []
    let spending = false

    /**
     * Drops the batches that were made in advance but are no longer stored, because PostgreSQL empties the table after
     * a crash and on a promoted standby. Runs when a client presented an unknown nonce, before that client is given the
     * next one.
     */
    const dropIfGone: Effect.Effect<void, StorageFailed, Database> = Effect.suspend(() => {
      const next = ahead.at(-1)
      return next === undefined ? Effect.void : Effect.flatMap(nonces.isStored(next.value), (isStored) => {
        if (isStored) return Effect.void
        ahead = ahead.filter(({ madeAt }) => madeAt > next.madeAt)
        return dropIfGone
      })
    })

    /**
     * Spends the nonces of the waiting requests that are of the same sort as the first request: requests with a signer,
     * or requests without a signer. The requests are collected when the statement runs: on SQLite at the end of this
     * turn of the event loop, on PostgreSQL now. If a batch has a nonce twice, the first request gets the row, and the
     * second finds none.
     */
    const consumeWaiting = () => {
      const group: Array<Waiting> = []
      // If one transaction handled both sorts, two processes could each hold a nonce for which the other one waits.
      const gather = () => {
        const isSigned = (group[0] ?? waiting[0])?.signed !== undefined
        for (const one of waiting.splice(0)) {
          const fits = group.length < largestSpend && (one.signed !== undefined) === isSigned
          ;(fits ? group : waiting).push(one)
        }
      }
      const consume = Effect.gen(function*() {
        gather()
        const signed = group.flatMap((one) => one.signed ?? [])
        return signed.length > 0
          ? yield* nonces.consumeWithSigners(signed)
          : { accounts: [], consumed: yield* nonces.consume(group.map(({ nonce }) => nonce)) }
      })
      // A batch of another process, or the sweep, may lock the same rows in a different order.
      const patient = Effect.retry(consume, { times: deadlocksBorne, while: ({ transient }) => transient })
      const answerAll = Effect.fnUntraced(function*({ accounts, consumed }: Effect.Success<typeof consume>) {
        const oldest = (yield* currentMillis) - config().nonce.ttl_seconds * 1000
        const found = new Map<string, Spent>()
        const signers = new Map<AccountId, Account>()
        for (const [value, madeAt] of consumed) found.set(value, madeAt < oldest ? "expired" : "fresh")
        for (const account of accounts) signers.set(account.id, account)
        if (found.size < group.length) yield* Effect.exit(dropIfGone)
        for (const { answer, nonce, signed } of group) {
          const account = signed === undefined ? undefined : signerIn(signers, signed)
          const isJudged = signed === undefined || account !== undefined
          answer(Effect.succeed({ account, spent: isJudged ? found.get(nonce) ?? "unknown" : "unknown" }))
          if (isJudged) found.delete(nonce)
        }
      })
      // Whatever fails, every request of the group is answered, and the loop continues with the next group.
      return Effect.catchCause(
        Effect.flatMap(database.dialect === "sqlite" ? transaction(consume) : patient, answerAll),
        (cause) => {
          if (group.length === 0) gather() // the transaction could not begin
          return Effect.sync(() => group.forEach(({ answer }) => answer(Effect.failCause(cause))))
        }
      )
    }

    const spendWaiting = Effect.gen(function*() {
      while (waiting.length > 0) yield* consumeWaiting()
      spending = false
    }).pipe(Effect.provideService(Database, database), unsynced)

    const judge = (nonce: string, signed: SignedNonce | undefined): Effect.Effect<Verdict, StorageFailed> => {
      // A text of any other length is not looked up, because it may be as long as a request.
      if (nonce.length !== tokenLength) return Effect.succeed({ account: undefined, spent: "unknown" })
      const answered = Effect.callback<Verdict, StorageFailed>((resume) => {
        const own = { nonce, signed, answer: resume }
        waiting.push(own)
        if (!spending) {
          spending = true
          fork(spendWaiting)
        }
        // The client has gone, so its nonce need not be spent.
        return Effect.sync(() => {
          const at = waiting.indexOf(own)
          if (at >= 0) waiting.splice(at, 1)
        })
      })
      return Effect.catchTag(synced(database.commits, answered), "SqlError", (error) =>
        failed(database, "nonce_spend", error))
    }

    return Nonces.of({
      issue,
      spend: (nonce) =>
        Effect.map(judge(nonce, undefined), ({ spent }) =>
          spent),
      spendSigned: (request) =>
        Effect.map(
          judge(request.nonce, request),
          ({ account, spent }) => account === undefined ? undefined : { account, spent }
        )
    })
  })

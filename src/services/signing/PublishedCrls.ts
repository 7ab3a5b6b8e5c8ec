import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isRevocationList, lacksEntries } from "../../crypto/x509/Crl.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Database } from "../../engine/sql/Database.ts"
import { StorageFailed } from "../../engine/sql/Database.ts"
import { eachSynced } from "../../engine/sql/Synced.ts"
import { makeRecorder } from "../../engine/sql/Unreadable.ts"
import { currentMillis } from "../../engine/Time.ts"
import * as crls from "../../store/revocation/Crls.ts"

const loggedEveryMillis = 3_600_000
const comparedEveryMillis = 1000
/** How many milliseconds a request waits for a comparison. After that, it gets the list that was served before. */
const patienceMillis = 1000

/** A list that this process has served, and the stored list, which is not its successor. */
export interface ForkedList {
  readonly issuer: string
  readonly served: Uint8Array
  /** `undefined` if no list is stored. */
  readonly stored: Uint8Array | undefined
  /** Whether the number of the stored list shows that the database has gone back to an older state. */
  readonly isOlder: boolean
}

type Stored = NonNullable<Effect.Success<ReturnType<typeof crls.find>>>
type Head = Pick<Stored, "crlNumber" | "thisUpdate">

/** A comparison of a stored list with a list that was served. */
interface Comparison {
  readonly head: Head | undefined
  /** Whether the served list must continue to be served; `undefined` if the comparison failed. */
  readonly verdict: Deferred.Deferred<boolean | undefined>
  /** When the comparison ended, in epoch milliseconds; infinite while it is running. */
  endedAt: number
}

const isSame = (one: Head | undefined, other: Head | undefined): boolean =>
  one?.crlNumber === other?.crlNumber && one?.thisUpdate === other?.thisUpdate

/**
 * Restores to the database the revocations that only a served list has. Returns whether that list must continue to be
 * served. If not, the stored list is right to omit the entries, because their certificates have expired.
 */
type TakeBack<R> = (forked: ForkedList) => Effect.Effect<boolean, StorageFailed, R>

/**
 * The stored revocation lists that this process serves. A list is read again only after a new list was stored. Once the
 * process has served a list, it serves no older list of the same issuer, and no list that lacks one of the revocations.
 * Otherwise, revoked certificates would be good again if the database went back to an older state
 * (docs/contribute/decisions/issued-lists.md).
 */
export class PublishedCrls extends Context.Service<PublishedCrls, {
  /**
   * Returns the list of an issuer as DER, or `undefined` if no worker has signed a list yet. Logs, at most once an
   * hour, that the next update of the list is overdue, or that the stored list is not the successor of the returned
   * list. Fails if the stored octets are not a list.
   */
  readonly of: (issuer: string) => Effect.Effect<Uint8Array | undefined, StorageFailed>
}>()("acme/services/signing/PublishedCrls") {
  static readonly layer = <R>(takeBack: TakeBack<R>): Layer.Layer<PublishedCrls, never, Database | R> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const context = yield* Effect.context<Database | R>()
        const scope = yield* Effect.scope
        const kept = new Map<string, Stored>()
        const comparisons = new Map<string, Comparison>()
        const told = new Map<string, number>()
        /** Logs something about an issuer at most once an hour. */
        const hourly = (about: string, log: Effect.Effect<void>) =>
          Effect.flatMap(currentMillis, (now) => {
            if (now - (told.get(about) ?? Number.NEGATIVE_INFINITY) < loggedEveryMillis) return Effect.void
            told.set(about, now)
            return log
          })
        const tellStale = Effect.fnUntraced(function*(issuer: string, nextUpdate: number) {
          if ((yield* currentMillis) <= nextUpdate * 1000) return
          const next_update = new Date(nextUpdate * 1000).toISOString()
          yield* hourly(`stale ${issuer}`, emit("local_ca_crl_stale", { issuer, next_update }))
        })
        const record = makeRecorder()
        /**
         * Returns the failure for stored octets that are not a revocation list. Such octets are not served, because
         * relying parties would look for the cause on their own side.
         */
        const spoilt = (issuer: string) => {
          const found = { statement: "crl_find", row: `issuer ${issuer}`, error: "der: is no revocation list" }
          const { error, row, statement } = found
          return Effect.andThen(
            record(found),
            new StorageFailed({ statement, detail: `${row}: ${error}`, transient: false, isUnreadable: true })
          )
        }
        /** Begins a comparison. The comparison continues even if the client whose request began it disconnects. */
        const compare = Effect.fnUntraced(function*(forked: ForkedList, head: Head | undefined) {
          const verdict = yield* Deferred.make<boolean | undefined>()
          const comparison: Comparison = { head, verdict, endedAt: Number.POSITIVE_INFINITY }
          comparisons.set(forked.issuer, comparison)
          const comparing = Effect.gen(function*() {
            const exit = yield* Effect.exit(takeBack(forked))
            comparison.endedAt = yield* currentMillis
            yield* Deferred.succeed(verdict, exit._tag === "Success" ? exit.value : undefined)
          })
          yield* Effect.forkIn(eachSynced(comparing), scope)
          return comparison
        })
        /** Returns whether the served list must continue to be served. Returns true while this is not known. */
        const isServedOn = Effect.fnUntraced(function*(issuer: string, { crlNumber }: Head, of: Comparison) {
          const verdict = yield* Effect.timeoutOption(Deferred.await(of.verdict), patienceMillis)
          if (verdict._tag === "None" || verdict.value === undefined) return true
          if (verdict.value) {
            const numbers = { crl_number: String(of.head?.crlNumber ?? 0), served_number: String(crlNumber) }
            yield* hourly(`older ${issuer}`, emit("local_ca_crl_went_back", { issuer, ...numbers }))
          }
          return verdict.value
        })
        /** Returns the comparison with this stored list, if it is running or has just ended. */
        const comparisonWith = (issuer: string, head: Head | undefined) =>
          Effect.map(currentMillis, (now) => {
            const known = comparisons.get(issuer)
            return known !== undefined && isSame(known.head, head) && now - known.endedAt < comparedEveryMillis
              ? known
              : undefined
          })
        const of = (issuer: string): Effect.Effect<Uint8Array | undefined, StorageFailed, Database | R> =>
          Effect.gen(function*() {
            const known = kept.get(issuer)
            const head = yield* crls.findHead(issuer)
            if (head !== undefined) yield* tellStale(issuer, head.nextUpdate)
            else if (known === undefined) return undefined
            if (known !== undefined && isSame(known, head)) return known.der
            const latest = yield* comparisonWith(issuer, head)
            if (known !== undefined && latest !== undefined && (yield* isServedOn(issuer, known, latest))) {
              return known.der
            }
            const stored = yield* crls.find(issuer)
            if (known !== undefined && kept.get(issuer) === known && !isSame(known, stored)) {
              const isOlder = stored === undefined || stored.crlNumber <= known.crlNumber
              if (isOlder || lacksEntries(stored.der, known.der)) {
                const forked = { issuer, served: known.der, stored: stored?.der, isOlder }
                const comparison = (yield* comparisonWith(issuer, stored)) ?? (yield* compare(forked, stored))
                if (yield* isServedOn(issuer, known, comparison)) return known.der
              }
            }
            // Another request has kept a list in the meantime, which may be newer than the list that was read here.
            if (kept.get(issuer) !== known) return yield* of(issuer)
            if (stored !== undefined && !isRevocationList(stored.der)) return yield* spoilt(issuer)
            if (stored !== undefined) kept.set(issuer, stored)
            return stored?.der
          })
        return { of: (issuer) => Effect.provide(of(issuer), context) }
      })
    )
}

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isRevocationList } from "../../crypto/x509/Crl.ts"
import { emit } from "../../domain/words/Log.ts"
import { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { makeRecorder } from "../../engine/sql/Unreadable.ts"
import { currentMillis } from "../../engine/Time.ts"
import * as crls from "../../store/revocation/Crls.ts"

const loggedEveryMillis = 3_600_000

/**
 * The stored revocation lists that this process serves. It reads a list again only after a new list was stored. Once it
 * has served a list, it serves no older list of the same issuer: if the database went back to an older state, revoked
 * certificates would be good again (docs/decisions/issued-lists.md).
 */
export class PublishedCrls extends Context.Service<PublishedCrls, {
  /**
   * Returns the list of an issuer as DER, or `undefined` if no worker has signed a list yet. It logs at most once an hour
   * that the next update of the list is past, or that the stored list is older than the list that it returns. Fails if the
   * stored octets are not a list.
   */
  readonly of: (issuer: string) => Effect.Effect<Uint8Array | undefined, StorageFailed>
}>()("acme/services/signing/PublishedCrls") {
  static readonly layer: Layer.Layer<PublishedCrls, never, Database> = Layer.effect(
    this,
    Effect.map(Database, (database) => {
      const kept = new Map<string, NonNullable<Effect.Success<ReturnType<typeof crls.find>>>>()
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
      const of = Effect.fnUntraced(function*(issuer: string) {
        const head = yield* crls.findHead(issuer)
        const known = kept.get(issuer)
        if (known !== undefined && (head === undefined || head.crlNumber < known.crlNumber)) {
          const facts = { issuer, crl_number: String(head?.crlNumber ?? 0), served_number: String(known.crlNumber) }
          yield* hourly(`older ${issuer}`, emit("local_ca_crl_went_back", facts))
          return known.der
        }
        if (head === undefined) return undefined
        yield* tellStale(issuer, head.nextUpdate)
        if (known?.crlNumber === head.crlNumber && known.thisUpdate === head.thisUpdate) return known.der
        const stored = yield* crls.find(issuer)
        if (stored !== undefined && !isRevocationList(stored.der)) return yield* spoilt(issuer)
        if (stored !== undefined) kept.set(issuer, stored)
        return stored?.der
      })
      return { of: (issuer) => Effect.provideService(of(issuer), Database, database) }
    })
  )
}

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isRevocationList } from "../../crypto/x509/Crl.ts"
import { emit } from "../../domain/words/Log.ts"
import { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { makeRecorder } from "../../engine/sql/Unreadable.ts"
import { currentMillis } from "../../engine/Time.ts"
import * as crls from "../../store/revocation/Crls.ts"

const staleEveryMillis = 3_600_000

/** The stored revocation lists that this process serves. A list is read again only after a new list was stored. */
export class PublishedCrls extends Context.Service<PublishedCrls, {
  /**
   * Returns the DER list of an issuer, or `undefined` while no worker has signed a list. A list past its next update is
   * returned too, and this is logged at most once an hour. Fails if the stored octets are not a list.
   */
  readonly of: (issuer: string) => Effect.Effect<Uint8Array | undefined, StorageFailed>
}>()("acme/services/signing/PublishedCrls") {
  static readonly layer: Layer.Layer<PublishedCrls, never, Database> = Layer.effect(
    this,
    Effect.map(Database, (database) => {
      const kept = new Map<string, NonNullable<Effect.Success<ReturnType<typeof crls.find>>>>()
      const toldStale = new Map<string, number>()
      const tellStale = Effect.fnUntraced(function*(issuer: string, nextUpdate: number) {
        const now = yield* currentMillis
        const told = toldStale.get(issuer) ?? Number.NEGATIVE_INFINITY
        if (now <= nextUpdate * 1000 || now - told < staleEveryMillis) return
        toldStale.set(issuer, now)
        yield* emit("local_ca_crl_stale", { issuer, next_update: new Date(nextUpdate * 1000).toISOString() })
      })
      const record = makeRecorder()
      /**
       * Returns the failure for stored octets that are not a revocation list. Without it, relying parties would search
       * for the cause on their own side.
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
        if (head === undefined) return undefined
        yield* tellStale(issuer, head.nextUpdate)
        const known = kept.get(issuer)
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

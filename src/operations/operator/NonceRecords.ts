import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { emit } from "../../domain/words/Log.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { inBatches } from "../../engine/sql/Pages.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { Config } from "../../settings/AppConfig.ts"
import * as audit from "../../store/AuditRows.ts"
import * as nonces from "../../store/NonceRows.ts"
import type { Operator } from "../Operator.ts"
import { actorFields, actorOf } from "../Operator.ts"
import { readForOperator } from "./OperatorReads.ts"

/* What operators can do with nonces. */

/** Counts the stored nonces, and returns how long each can be used. */
export const count = ({ nonce }: Pick<Config, "nonce">) =>
  Effect.map(readForOperator(nonces.count), (count) => ({ count, ttlSeconds: nonce.ttl_seconds }))

const batch = 1000

/**
 * Deletes nonces older than `ttlSeconds` seconds. The default is the age at which a nonce can no longer be used. Each
 * transaction deletes up to a thousand nonces, and records how many it deleted.
 */
export const cleanup = Effect.fn("NonceRecords.cleanup")(function*(
  { nonce }: Pick<Config, "nonce">,
  operator: Operator,
  ttlSeconds: number = nonce.ttl_seconds
) {
  const before = (yield* currentSeconds) - ttlSeconds
  const removed = yield* Ref.make(0)
  const row = (removed: number) =>
    audit.insert({ event: "nonce_cleanup_completed", ...actorOf(operator), detail: { removed } })
  const pass = (limit: number) =>
    Effect.uninterruptible(Effect.tap(
      transaction(Effect.tap(nonces.sweep(before, limit), (gone) => gone === 0 ? Effect.void : row(gone))),
      (gone) => Ref.update(removed, (sum) => sum + gone)
    ))
  const told = Effect.flatMap(
    Ref.get(removed),
    (rows_removed) =>
      rows_removed === 0 ? Effect.void : emit("admin_nonces_cleaned", { ...actorFields(operator), rows_removed })
  )
  yield* Effect.ensuring(inBatches(batch, pass), told)
  return { removed: yield* Ref.get(removed) }
})

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { currentMillis } from "../../engine/Time.ts"

const rowsPerMinute = 10
const minuteMillis = 60_000

/**
 * Limits how many rows strangers can make this process write (docs/contribute/decisions/audit-rows.md, "Rows that
 * outsiders cause").
 */
export class AuditAllowance extends Context.Service<AuditAllowance, {
  /** Returns whether one more row may be written now. At most ten rows may be written per minute. */
  readonly take: Effect.Effect<boolean>
}>()("acme/services/audit/AuditAllowance") {
  static readonly layer: Layer.Layer<AuditAllowance> = Layer.sync(this, () => {
    let written: ReadonlyArray<number> = []
    return {
      take: Effect.map(currentMillis, (now) => {
        written = written.filter((at) => at > now - minuteMillis)
        if (written.length >= rowsPerMinute) return false
        written = [...written, now]
        return true
      })
    }
  })
}

import * as Effect from "effect/Effect"
import { emit } from "../../../domain/words/Log.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import * as users from "../../../store/operators/Users.ts"

interface Settings {
  readonly require_mfa: boolean
  readonly notify: Pick<Config["admin"]["notify"], "enabled">
}

/**
 * Logs remarks about operators for the person who starts the service: whether there are no operators, how many must
 * still enrol a second factor, and how many have no mail address.
 */
export const remarks = Effect.fnUntraced(function*({ notify, require_mfa }: Settings) {
  if ((yield* users.count({ status: undefined, role: undefined })) === 0) return yield* emit("admin_no_users", {})
  const unenrolled = require_mfa ? yield* users.countUnenrolled : 0
  if (unenrolled > 0) yield* emit("admin_mfa_enrolment_pending", { count: unenrolled })
  const unaddressed = notify.enabled.includes("email") ? yield* users.countUnaddressed : 0
  if (unaddressed > 0) yield* emit("admin_users_without_address", { count: unaddressed })
})

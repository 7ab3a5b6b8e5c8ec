import * as Effect from "effect/Effect"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import * as users from "../../store/operators/Users.ts"
import type { SignInSettings } from "./LoginLimiter.ts"

/** Tells whoever starts the service of its operators: that there are none, or how many still have to enrol a second factor. */
export const remarks = Effect.fnUntraced(function*({ require_mfa }: Pick<SignInSettings, "require_mfa">) {
  if ((yield* users.count({ status: undefined, role: undefined })) === 0) return yield* emit("admin_no_users", {})
  const count = require_mfa ? yield* users.countUnenrolled : 0
  if (count > 0) yield* emit("admin_mfa_enrolment_pending", { count })
})

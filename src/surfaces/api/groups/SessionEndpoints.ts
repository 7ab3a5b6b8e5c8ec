import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { reachedBy } from "../../operator/ReachedBy.ts"
import { refusals } from "../../operator/RefusalSchemas.ts"
import { contact, pageOf, password } from "../../operator/schemas/Common.ts"
import { RecoveryCodes, SecondFactor, SessionRow, TotpSecret } from "../../operator/schemas/OperatorSchemas.ts"
import { byId, paging } from "../../operator/schemas/Parameters.ts"

/* Sign-in, the second factor, and the caller's own account (docs/decisions/admin.md, "Sign-in"). */

const Code = Schema.Struct({
  code: Schema.String.annotate({ description: "A code of the authenticator, or a recovery code." })
})

/** `/api/mfa` and `/api/account`: the caller's own account. */
export const own = HttpApiGroup.make("own").add(
  HttpApiEndpoint.get("readSecondFactor", "/api/mfa", { success: SecondFactor })
    .annotate(OpenApi.Summary, "Show the caller's second factor")
    .annotateMerge(reachedBy("own")),
  HttpApiEndpoint.post("beginEnrolment", "/api/mfa/totp", {
    payload: Schema.Struct({ password }),
    success: TotpSecret,
    error: refusals("step_up_failed")
  })
    .annotate(OpenApi.Summary, "Begin to enrol a second factor, or another one; the one in force stays so until then")
    .annotateMerge(reachedBy("own")),
  HttpApiEndpoint.post("confirmEnrolment", "/api/mfa/totp/confirm", {
    payload: Code,
    success: RecoveryCodes,
    error: refusals("invalid_code", "mfa_not_pending")
  })
    .annotate(OpenApi.Summary, "Complete the enrolment; new recovery codes are shown once")
    .annotateMerge(reachedBy("own")),
  HttpApiEndpoint.delete("disableSecondFactor", "/api/mfa/totp", {
    payload: Schema.Struct({ password }),
    success: HttpApiSchema.NoContent,
    error: refusals("step_up_failed", "mfa_required", "mfa_not_enrolled")
  })
    .annotate(OpenApi.Summary, "Turn the caller's second factor off")
    .annotateMerge(reachedBy("own")),
  HttpApiEndpoint.post("reissueRecoveryCodes", "/api/mfa/recovery-codes", {
    payload: Schema.Struct({ password }),
    success: RecoveryCodes,
    error: refusals("step_up_failed", "mfa_not_enrolled")
  })
    .annotate(OpenApi.Summary, "Replace the recovery codes; the new ones are shown once")
    .annotateMerge(reachedBy("own")),
  HttpApiEndpoint.post("changeOwnPassword", "/api/account/password", {
    payload: Schema.Struct({ currentPassword: Schema.String, newPassword: Schema.String }),
    success: HttpApiSchema.NoContent,
    error: refusals("weak_password", "step_up_failed")
  })
    .annotate(OpenApi.Summary, "Change the caller's password; ends every other session")
    .annotateMerge(reachedBy("own")),
  HttpApiEndpoint.post("changeOwnContact", "/api/account/contact", {
    payload: Schema.Struct({ password, contact }),
    success: HttpApiSchema.NoContent,
    error: refusals("step_up_failed")
  })
    .annotate(OpenApi.Summary, "Change the address for the caller's notifications; without one, it is cleared")
    .annotateMerge(reachedBy("own")),
  HttpApiEndpoint.get("listOwnSessions", "/api/account/sessions", { query: paging, success: pageOf(SessionRow) })
    .annotate(OpenApi.Summary, "One's sessions")
    .annotateMerge(reachedBy("own")),
  HttpApiEndpoint.post("revokeOwnSession", "/api/account/sessions/:id/revoke", {
    params: byId("session"),
    success: HttpApiSchema.NoContent
  })
    .annotate(OpenApi.Summary, "End one of the caller's sessions")
    .annotateMerge(reachedBy("own"))
).annotate(OpenApi.Description, "The caller's own account: password, contact, second factor, sessions.")

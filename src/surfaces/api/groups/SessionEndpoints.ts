import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { reachedBy } from "../../operator/ReachedBy.ts"
import { refusals } from "../../operator/RefusalSchemas.ts"
import { contact, pageOf, password } from "../../operator/schemas/Common.ts"
import {
  EnrolledSession,
  HalfSession,
  RecoveryCodes,
  SecondFactor,
  Session,
  SessionRow,
  Step,
  TotpSecret
} from "../../operator/schemas/OperatorSchemas.ts"
import { byId, paging, word } from "../../operator/schemas/Parameters.ts"

/* Sign-in, the second factor, and the caller's own account (docs/decisions/admin.md, "Sign-in"). */

const Code = Schema.Struct({
  code: Schema.String.annotate({ description: "A code of the authenticator, or a recovery code." })
})

/** `/api/session`: sign-in and sign-out. */
export const session = HttpApiGroup.make("session").add(
  HttpApiEndpoint.post("signIn", "/api/session", {
    payload: Schema.Struct({ username: Schema.String, password: Schema.String }),
    success: [Session, HalfSession],
    error: refusals("invalid_credentials")
  })
    .annotate(OpenApi.Summary, "Sign in")
    .annotateMerge(reachedBy("public", { isWithoutCsrf: true })),
  HttpApiEndpoint.get("readSession", "/api/session", { success: Session })
    .annotate(OpenApi.Summary, "Show who is signed in")
    .annotateMerge(reachedBy("own")),
  HttpApiEndpoint.delete("signOut", "/api/session", {
    query: {
      all: word(["true", "false"], "Whether every session of the operator ends.", "false")
    },
    success: HttpApiSchema.NoContent
  })
    .annotate(OpenApi.Summary, "Sign out of this session, or of all sessions")
    .annotateMerge(reachedBy("own")),
  HttpApiEndpoint.get("readStep", "/api/session/mfa", { success: Schema.Struct({ step: Step }) })
    .annotate(OpenApi.Summary, "Say whether a session has to give or to enrol a second factor")
    .annotateMerge(reachedBy("half")),
  HttpApiEndpoint.post("verifyCode", "/api/session/mfa", {
    payload: Code,
    success: Session,
    error: refusals("invalid_credentials")
  })
    .annotate(OpenApi.Summary, "Complete a sign-in with a code")
    .annotateMerge(reachedBy("half", { isWithoutCsrf: true })),
  HttpApiEndpoint.delete("abandonSignIn", "/api/session/mfa", { success: HttpApiSchema.NoContent })
    .annotate(OpenApi.Summary, "Abandon a sign-in that has not given its second factor")
    .annotateMerge(reachedBy("half")),
  HttpApiEndpoint.post("beginForcedEnrolment", "/api/session/mfa/totp", { success: TotpSecret })
    .annotate(OpenApi.Summary, "Begin the enrolment that this sign-in needs")
    .annotateMerge(reachedBy("half")),
  HttpApiEndpoint.post("confirmForcedEnrolment", "/api/session/mfa/totp/confirm", {
    payload: Code,
    success: EnrolledSession,
    error: refusals("invalid_credentials", "mfa_not_pending")
  })
    .annotate(OpenApi.Summary, "Complete the enrolment and the sign-in")
    .annotateMerge(reachedBy("half"))
).annotate(OpenApi.Description, "Sign-in and sign-out.")

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

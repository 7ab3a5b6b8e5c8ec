import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { reachedBy } from "../Access.ts"
import { refusals } from "../Refusals.ts"
import { pageOf, password } from "../schemas/Common.ts"
import {
  EnrolledSession,
  HalfSession,
  RecoveryCodes,
  SecondFactor,
  Session,
  SessionRow,
  Step,
  TotpSecret
} from "../schemas/Operators.ts"
import { byId, paging, word } from "../schemas/Parameters.ts"

/* Sign-in, the second factor, and the caller's own account (docs/decisions/admin.md, "Sign-in"). */

const Code = Schema.Struct({
  code: Schema.String.annotations({ description: "A code of the authenticator, or a recovery code." })
})

/** `/api/session`: sign-in and sign-out. */
export const session = HttpApiGroup.make("session").add(
  HttpApiEndpoint.post("signIn", "/api/session")
    .setPayload(Schema.Struct({ username: Schema.String, password: Schema.String }))
    .addSuccess(Schema.Union(Session, HalfSession))
    .addError(refusals("invalid_credentials"))
    .annotate(OpenApi.Summary, "Sign in")
    .pipe(reachedBy("public", { isWithoutCsrf: true }))
)
  .add(
    HttpApiEndpoint.get("readSession", "/api/session")
      .addSuccess(Session)
      .annotate(OpenApi.Summary, "Show who is signed in")
      .pipe(reachedBy("own"))
  )
  .add(
    HttpApiEndpoint.del("signOut", "/api/session")
      .setUrlParams(
        Schema.Struct({
          all: word(["true", "false"], "Whether every session of the operator ends.", "false")
        })
      )
      .addSuccess(HttpApiSchema.NoContent)
      .annotate(OpenApi.Summary, "Sign out of this session, or of all sessions")
      .pipe(reachedBy("own"))
  )
  .add(
    HttpApiEndpoint.get("readStep", "/api/session/mfa")
      .addSuccess(Schema.Struct({ step: Step }))
      .annotate(OpenApi.Summary, "Say whether a session has to give or to enrol a second factor")
      .pipe(reachedBy("half"))
  )
  .add(
    HttpApiEndpoint.post("verifyCode", "/api/session/mfa")
      .setPayload(Code)
      .addSuccess(Session)
      .addError(refusals("invalid_code"))
      .annotate(OpenApi.Summary, "Complete a sign-in with a code")
      .pipe(reachedBy("half", { isWithoutCsrf: true }))
  )
  .add(
    HttpApiEndpoint.del("abandonSignIn", "/api/session/mfa")
      .addSuccess(HttpApiSchema.NoContent)
      .annotate(OpenApi.Summary, "Abandon a sign-in that has not given its second factor")
      .pipe(reachedBy("half"))
  )
  .add(
    HttpApiEndpoint.post("beginForcedEnrolment", "/api/session/mfa/totp")
      .addSuccess(TotpSecret)
      .annotate(OpenApi.Summary, "Begin the enrolment that this sign-in needs")
      .pipe(reachedBy("half"))
  )
  .add(
    HttpApiEndpoint.post("confirmForcedEnrolment", "/api/session/mfa/totp/confirm")
      .setPayload(Code)
      .addSuccess(EnrolledSession)
      .addError(refusals("invalid_code", "mfa_not_pending"))
      .annotate(OpenApi.Summary, "Complete the enrolment and the sign-in")
      .pipe(reachedBy("half"))
  ).annotate(OpenApi.Description, "Sign-in and sign-out.")

/** `/api/mfa` and `/api/account`: the caller's own account. */
export const own = HttpApiGroup.make("own").add(
  HttpApiEndpoint.get("readSecondFactor", "/api/mfa")
    .addSuccess(SecondFactor)
    .annotate(OpenApi.Summary, "Show the caller's second factor")
    .pipe(reachedBy("own"))
)
  .add(
    HttpApiEndpoint.post("beginEnrolment", "/api/mfa/totp")
      .setPayload(Schema.Struct({ password: Schema.optional(password) }))
      .addSuccess(TotpSecret)
      .addError(refusals("step_up_failed"))
      .annotate(OpenApi.Summary, "Begin to enrol a second factor; to replace one, give the password")
      .pipe(reachedBy("own"))
  )
  .add(
    HttpApiEndpoint.post("confirmEnrolment", "/api/mfa/totp/confirm")
      .setPayload(Code)
      .addSuccess(RecoveryCodes)
      .addError(refusals("invalid_code", "mfa_not_pending"))
      .annotate(OpenApi.Summary, "Complete the enrolment; new recovery codes are shown once")
      .pipe(reachedBy("own"))
  )
  .add(
    HttpApiEndpoint.del("disableSecondFactor", "/api/mfa/totp")
      .setPayload(Schema.Struct({ password: Schema.optional(password) }))
      .addSuccess(HttpApiSchema.NoContent)
      .addError(refusals("step_up_failed", "mfa_required", "mfa_not_enrolled"))
      .annotate(OpenApi.Summary, "Turn the caller's second factor off")
      .pipe(reachedBy("own"))
  )
  .add(
    HttpApiEndpoint.post("reissueRecoveryCodes", "/api/mfa/recovery-codes")
      .setPayload(Schema.Struct({ password: Schema.optional(password) }))
      .addSuccess(RecoveryCodes)
      .addError(refusals("step_up_failed", "mfa_not_enrolled"))
      .annotate(OpenApi.Summary, "Replace the recovery codes; the new ones are shown once")
      .pipe(reachedBy("own"))
  )
  .add(
    HttpApiEndpoint.post("changeOwnPassword", "/api/account/password")
      .setPayload(Schema.Struct({ currentPassword: Schema.String, newPassword: Schema.String }))
      .addSuccess(HttpApiSchema.NoContent)
      .addError(refusals("weak_password", "step_up_failed"))
      .annotate(OpenApi.Summary, "Change the caller's password; ends every other session")
      .pipe(reachedBy("own"))
  )
  .add(
    HttpApiEndpoint.post("changeOwnContact", "/api/account/contact")
      .setPayload(Schema.Struct({ password, contact: Schema.optional(Schema.String) }))
      .addSuccess(HttpApiSchema.NoContent)
      .addError(refusals("step_up_failed"))
      .annotate(OpenApi.Summary, "Change the address for the caller's notifications; without one, it is cleared")
      .pipe(reachedBy("own"))
  )
  .add(
    HttpApiEndpoint.get("listOwnSessions", "/api/account/sessions")
      .setUrlParams(Schema.Struct(paging))
      .addSuccess(pageOf(SessionRow))
      .annotate(OpenApi.Summary, "One's sessions")
      .pipe(reachedBy("own"))
  )
  .add(
    HttpApiEndpoint.post("revokeOwnSession", "/api/account/sessions/:id/revoke")
      .setPath(byId("session"))
      .addSuccess(HttpApiSchema.NoContent)
      .annotate(OpenApi.Summary, "End one of the caller's sessions")
      .pipe(reachedBy("own"))
  ).annotate(OpenApi.Description, "The caller's own account: password, contact, second factor, sessions.")

import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { reachedBy } from "../Access.ts"
import { refusals } from "../Refusals.ts"
import { pageOf, paging, password } from "../schemas/Common.ts"
import { MintedToken, Operator, OperatorDetail, OperatorStatus, Role, SessionRow, Token } from "../schemas/Operators.ts"

/* Operators and tokens (docs/decisions/admin.md, "Operators" and "Tokens"). */

const named = Schema.Struct({ username: Schema.String })
const stepUp = Schema.Struct({ password })
const admins = { isStepUp: true }

/** `/api/operators`: for the role `admin` alone, even to read. */
export const operators = HttpApiGroup.make("operators").add(
  HttpApiEndpoint.get("listOperators", "/api/operators")
    .setUrlParams(Schema.Struct({ status: Schema.optional(OperatorStatus), role: Schema.optional(Role), ...paging }))
    .addSuccess(pageOf(Operator))
    .annotate(OpenApi.Summary, "Operators by name")
    .pipe(reachedBy("admin"))
)
  .add(
    HttpApiEndpoint.get("readOperator", "/api/operators/:username")
      .setPath(named)
      .addSuccess(OperatorDetail)
      .annotate(OpenApi.Summary, "One operator")
      .pipe(reachedBy("admin"))
  )
  .add(
    HttpApiEndpoint.get("listSessionsOf", "/api/operators/:username/sessions")
      .setPath(named)
      .setUrlParams(Schema.Struct(paging))
      .addSuccess(pageOf(SessionRow))
      .annotate(OpenApi.Summary, "Sessions of an operator")
      .pipe(reachedBy("admin"))
  )
  .add(
    HttpApiEndpoint.post("disableOperator", "/api/operators/:username/disable")
      .setPath(named)
      .setPayload(stepUp)
      .addSuccess(HttpApiSchema.NoContent)
      .addError(refusals("step_up_failed", "last_admin", "self_target"))
      .annotate(OpenApi.Summary, "Disable an operator; their sessions and tokens end")
      .pipe(reachedBy("admin", admins))
  )
  .add(
    HttpApiEndpoint.post("enableOperator", "/api/operators/:username/enable")
      .setPath(named)
      .setPayload(stepUp)
      .addSuccess(HttpApiSchema.NoContent)
      .addError(refusals("step_up_failed"))
      .annotate(OpenApi.Summary, "Enable an operator")
      .pipe(reachedBy("admin", admins))
  )
  .add(
    HttpApiEndpoint.post("resetSecondFactor", "/api/operators/:username/totp/reset")
      .setPath(named)
      .setPayload(stepUp)
      .addSuccess(HttpApiSchema.NoContent)
      .addError(refusals("step_up_failed", "self_target", "mfa_not_enrolled"))
      .annotate(OpenApi.Summary, "Take an operator's second factor away; their sessions end")
      .pipe(reachedBy("admin", admins))
  )
  .add(
    HttpApiEndpoint.post("changeRole", "/api/operators/:username/role")
      .setPath(named)
      .setPayload(Schema.Struct({ password, role: Role }))
      .addSuccess(HttpApiSchema.NoContent)
      .addError(refusals("step_up_failed", "last_admin", "self_target"))
      .annotate(OpenApi.Summary, "Change an operator's role; their sessions end")
      .pipe(reachedBy("admin", admins))
  )
  .add(
    HttpApiEndpoint.post("changeContact", "/api/operators/:username/contact")
      .setPath(named)
      .setPayload(Schema.Struct({ password, contact: Schema.optional(Schema.String) }))
      .addSuccess(HttpApiSchema.NoContent)
      .addError(refusals("step_up_failed"))
      .annotate(OpenApi.Summary, "Change the address of an operator's notifications; absent clears it")
      .pipe(reachedBy("admin", admins))
  )
  .add(
    HttpApiEndpoint.post("revokeSessionOf", "/api/operators/:username/sessions/:id/revoke")
      .setPath(Schema.Struct({ username: Schema.String, id: Schema.String }))
      .setPayload(stepUp)
      .addSuccess(HttpApiSchema.NoContent)
      .addError(refusals("step_up_failed"))
      .annotate(OpenApi.Summary, "End a session of an operator")
      .pipe(reachedBy("admin", admins))
  )
  .add(
    HttpApiEndpoint.post("revokeSessionsOf", "/api/operators/:username/sessions/revoke")
      .setPath(named)
      .setPayload(stepUp)
      .addSuccess(HttpApiSchema.NoContent)
      .addError(refusals("step_up_failed"))
      .annotate(OpenApi.Summary, "End every session of an operator")
      .pipe(reachedBy("admin", admins))
  ).annotate(OpenApi.Description, "Operators. A change asks for the password of whoever makes it.")

/** `/api/tokens`: for programs. */
export const tokens = HttpApiGroup.make("tokens").add(
  HttpApiEndpoint.get("listTokens", "/api/tokens")
    .setUrlParams(Schema.Struct({
      user: Schema.optional(Schema.String.annotations({ description: "Of this operator; for the role admin." })),
      ...paging
    }))
    .addSuccess(pageOf(Token))
    .annotate(OpenApi.Summary, "Tokens, without their secrets")
    .pipe(reachedBy("own"))
)
  .add(
    HttpApiEndpoint.post("createToken", "/api/tokens")
      .setPayload(Schema.Struct({
        password,
        name: Schema.String,
        role: Role,
        expiresInDays: Schema.Int.annotations({ description: "1 to 366." }),
        user: Schema.optional(Schema.String.annotations({ description: "Its owner; oneself unless one is an admin." })),
        allowedAddresses: Schema.optional(
          Schema.Array(Schema.String.annotations({ description: "Addresses or CIDR." }))
        )
      }))
      .addSuccess(MintedToken)
      .addError(refusals("name_taken", "step_up_failed"))
      .annotate(OpenApi.Summary, "Mint a token; its secret is shown once")
      .pipe(reachedBy("own"))
  )
  .add(
    HttpApiEndpoint.post("revokeToken", "/api/tokens/:id/revoke")
      .setPath(Schema.Struct({ id: Schema.String }))
      .addSuccess(HttpApiSchema.NoContent)
      .annotate(OpenApi.Summary, "End a token")
      .pipe(reachedBy("own"))
  ).annotate(OpenApi.Description, "Tokens for automation.")

import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { tokenLife } from "../../../domain/ApiToken.ts"
import { reachedBy } from "../Access.ts"
import { refusals } from "../Refusals.ts"
import { pageOf, password } from "../schemas/Common.ts"
import { MintedToken, Operator, OperatorDetail, OperatorStatus, Role, SessionRow, Token } from "../schemas/Operators.ts"
import { byId, paging, segment, word } from "../schemas/Parameters.ts"

/* Operators and tokens (docs/decisions/admin.md, "Operators" and "Tokens"). */

const named = Schema.Struct({ username: segment("The name of the operator.") })
const stepUp = Schema.Struct({ password })
const admins = { isStepUp: true }

/** `/api/operators`. Only the role `admin` may use it, even to read. */
export const operators = HttpApiGroup.make("operators").add(
  HttpApiEndpoint.get("listOperators", "/api/operators")
    .setUrlParams(Schema.Struct({
      status: word(OperatorStatus.literals, "The status of the operator."),
      role: word(Role.literals, "The role of the operator."),
      ...paging
    }))
    .addSuccess(pageOf(Operator))
    .annotate(OpenApi.Summary, "List operators by name")
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
      .annotate(OpenApi.Summary, "List the sessions of an operator")
      .pipe(reachedBy("admin"))
  )
  .add(
    HttpApiEndpoint.post("disableOperator", "/api/operators/:username/disable")
      .setPath(named)
      .setPayload(stepUp)
      .addSuccess(HttpApiSchema.NoContent)
      .addError(refusals("step_up_failed", "last_admin", "self_target"))
      .annotate(OpenApi.Summary, "Disable an operator; ends their sessions, and their tokens are refused meanwhile")
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
      .annotate(OpenApi.Summary, "Remove an operator's second factor; ends their sessions")
      .pipe(reachedBy("admin", admins))
  )
  .add(
    HttpApiEndpoint.post("changeRole", "/api/operators/:username/role")
      .setPath(named)
      .setPayload(Schema.Struct({ password, role: Role }))
      .addSuccess(HttpApiSchema.NoContent)
      .addError(refusals("step_up_failed", "last_admin", "self_target"))
      .annotate(OpenApi.Summary, "Change an operator's role; ends their sessions")
      .pipe(reachedBy("admin", admins))
  )
  .add(
    HttpApiEndpoint.post("changeContact", "/api/operators/:username/contact")
      .setPath(named)
      .setPayload(Schema.Struct({ password, contact: Schema.optional(Schema.String) }))
      .addSuccess(HttpApiSchema.NoContent)
      .addError(refusals("step_up_failed"))
      .annotate(OpenApi.Summary, "Change the address for an operator's notifications; without one, it is cleared")
      .pipe(reachedBy("admin", admins))
  )
  .add(
    HttpApiEndpoint.post("revokeSessionOf", "/api/operators/:username/sessions/:id/revoke")
      .setPath(Schema.Struct({ ...named.fields, ...byId("session").fields }))
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
  ).annotate(OpenApi.Description, "Operators. Each change needs the password of the caller.")

/** `/api/tokens`: for programs. */
export const tokens = HttpApiGroup.make("tokens").add(
  HttpApiEndpoint.get("listTokens", "/api/tokens")
    .setUrlParams(Schema.Struct({
      user: Schema.optional(
        Schema.String.annotations({ description: "Only the tokens of this operator. Only the role admin may give it." })
      ),
      ...paging
    }))
    .addSuccess(pageOf(Token))
    .annotate(OpenApi.Summary, "List tokens, without their secrets")
    .pipe(reachedBy("own"))
)
  .add(
    HttpApiEndpoint.post("createToken", "/api/tokens")
      .setPayload(Schema.Struct({
        password,
        name: Schema.String,
        role: Role,
        expiresInDays: Schema.Int.annotations({ description: `${tokenLife.least} to ${tokenLife.most}.` }),
        user: Schema.optional(
          Schema.String.annotations({
            description: "The owner. Without it, the caller. Only the role admin may name somebody else."
          })
        ),
        allowedAddresses: Schema.optional(
          Schema.Array(Schema.String.annotations({ description: "Addresses or CIDR ranges that may use the token." }))
        )
      }))
      .addSuccess(MintedToken)
      .addError(refusals("name_taken", "step_up_failed"))
      .annotate(OpenApi.Summary, "Create a token; its secret is shown once")
      .pipe(reachedBy("own"))
  )
  .add(
    HttpApiEndpoint.post("revokeToken", "/api/tokens/:id/revoke")
      .setPath(byId("token"))
      .addSuccess(HttpApiSchema.NoContent)
      .annotate(OpenApi.Summary, "Revoke a token")
      .pipe(reachedBy("own"))
  ).annotate(OpenApi.Description, "Tokens for programs.")

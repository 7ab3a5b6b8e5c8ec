import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { tokenLife } from "../../../domain/ApiToken.ts"
import { reachedBy } from "../../operator/ReachedBy.ts"
import { refusals } from "../../operator/RefusalSchemas.ts"
import { contact, intOf, optionalMember, pageOf, password } from "../../operator/schemas/Common.ts"
import {
  MintedToken,
  Operator,
  OperatorDetail,
  OperatorStatus,
  Role,
  SessionRow,
  Token
} from "../../operator/schemas/OperatorSchemas.ts"
import { byId, paging, segment, word } from "../../operator/schemas/Parameters.ts"

/* Operators and tokens (docs/decisions/admin.md, "Operators" and "Tokens"). */

const named = { username: segment("The name of the operator.") }
const stepUp = Schema.Struct({ password })
const admins = { isStepUp: true }

/** `/api/operators`. Only the role `admin` may use it, even to read. */
export const operators = HttpApiGroup.make("operators").add(
  HttpApiEndpoint.get("listOperators", "/api/operators", {
    query: {
      status: word(OperatorStatus.literals, "The status of the operator."),
      role: word(Role.literals, "The role of the operator."),
      ...paging
    },
    success: pageOf(Operator)
  })
    .annotate(OpenApi.Summary, "List operators by name")
    .annotateMerge(reachedBy("admin")),
  HttpApiEndpoint.get("readOperator", "/api/operators/:username", { params: named, success: OperatorDetail })
    .annotate(OpenApi.Summary, "One operator")
    .annotateMerge(reachedBy("admin")),
  HttpApiEndpoint.get("listSessionsOf", "/api/operators/:username/sessions", {
    params: named,
    query: paging,
    success: pageOf(SessionRow)
  })
    .annotate(OpenApi.Summary, "List the sessions of an operator")
    .annotateMerge(reachedBy("admin")),
  HttpApiEndpoint.post("disableOperator", "/api/operators/:username/disable", {
    params: named,
    payload: stepUp,
    success: HttpApiSchema.NoContent,
    error: refusals("step_up_failed", "last_admin", "self_target")
  })
    .annotate(OpenApi.Summary, "Disable an operator; ends their sessions, and their tokens are refused meanwhile")
    .annotateMerge(reachedBy("admin", admins)),
  HttpApiEndpoint.post("enableOperator", "/api/operators/:username/enable", {
    params: named,
    payload: stepUp,
    success: HttpApiSchema.NoContent,
    error: refusals("step_up_failed")
  })
    .annotate(OpenApi.Summary, "Enable an operator")
    .annotateMerge(reachedBy("admin", admins)),
  HttpApiEndpoint.post("resetSecondFactor", "/api/operators/:username/totp/reset", {
    params: named,
    payload: stepUp,
    success: HttpApiSchema.NoContent,
    error: refusals("step_up_failed", "self_target", "mfa_not_enrolled")
  })
    .annotate(OpenApi.Summary, "Remove an operator's second factor; ends their sessions")
    .annotateMerge(reachedBy("admin", admins)),
  HttpApiEndpoint.post("changeRole", "/api/operators/:username/role", {
    params: named,
    payload: Schema.Struct({ password, role: Role }),
    success: HttpApiSchema.NoContent,
    error: refusals("step_up_failed", "last_admin", "self_target")
  })
    .annotate(OpenApi.Summary, "Change an operator's role; ends their sessions")
    .annotateMerge(reachedBy("admin", admins)),
  HttpApiEndpoint.post("changeContact", "/api/operators/:username/contact", {
    params: named,
    payload: Schema.Struct({ password, contact }),
    success: HttpApiSchema.NoContent,
    error: refusals("step_up_failed")
  })
    .annotate(OpenApi.Summary, "Change the address for an operator's notifications; without one, it is cleared")
    .annotateMerge(reachedBy("admin", admins)),
  HttpApiEndpoint.post("revokeSessionOf", "/api/operators/:username/sessions/:id/revoke", {
    params: { ...named, ...byId("session") },
    payload: stepUp,
    success: HttpApiSchema.NoContent,
    error: refusals("step_up_failed")
  })
    .annotate(OpenApi.Summary, "End a session of an operator")
    .annotateMerge(reachedBy("admin", admins)),
  HttpApiEndpoint.post("revokeSessionsOf", "/api/operators/:username/sessions/revoke", {
    params: named,
    payload: stepUp,
    success: HttpApiSchema.NoContent,
    error: refusals("step_up_failed")
  })
    .annotate(OpenApi.Summary, "End every session of an operator")
    .annotateMerge(reachedBy("admin", admins))
).annotate(OpenApi.Description, "Operators. Each change needs the password of the caller.")

/** `/api/tokens`: for programs. */
export const tokens = HttpApiGroup.make("tokens").add(
  HttpApiEndpoint.get("listTokens", "/api/tokens", {
    query: {
      user: Schema.optionalKey(
        Schema.String.annotate({ description: "Only the tokens of this operator. Only the role admin may give it." })
      ),
      ...paging
    },
    success: pageOf(Token)
  })
    .annotate(OpenApi.Summary, "List tokens, without their secrets")
    .annotateMerge(reachedBy("own")),
  HttpApiEndpoint.post("createToken", "/api/tokens", {
    payload: Schema.Struct({
      password,
      name: Schema.String,
      role: Role,
      expiresInDays: intOf(`${tokenLife.least} to ${tokenLife.most}.`),
      user: optionalMember(
        Schema.String.annotate({
          description: "The owner. Without it, the caller. Only the role admin may name somebody else."
        })
      ),
      allowedAddresses: optionalMember(
        Schema.Array(Schema.String.annotate({ description: "Addresses or CIDR ranges that may use the token." }))
      )
    }),
    success: MintedToken,
    error: refusals("name_taken", "step_up_failed")
  })
    .annotate(OpenApi.Summary, "Create a token; its secret is shown once")
    .annotateMerge(reachedBy("own")),
  HttpApiEndpoint.post("revokeToken", "/api/tokens/:id/revoke", {
    params: byId("token"),
    success: HttpApiSchema.NoContent
  })
    .annotate(OpenApi.Summary, "Revoke a token")
    .annotateMerge(reachedBy("own"))
).annotate(OpenApi.Description, "Tokens for programs.")

import { Effect, Schema } from "effect"
import { AuthorizationId, ChallengeId } from "../../../domain/Id.ts"
import { json } from "../../../kernel/http/Message.ts"
import * as authorizations from "../../../operations/authorization/Authorizations.ts"
import * as challenges from "../../../operations/authorization/Challenges.ts"
import type { BySomeAccount } from "../Signed.ts"
import { authorizationObject, challengeObject } from "../Wire.ts"
import { recordId } from "./RecordId.ts"

const pendingRetryAfter = "1"

export const AuthorizationUpdate = Schema.Struct({ status: Schema.Literal("deactivated") })

/** RFC 8555 sections 7.5 and 7.5.2; only the latter has a payload. */
export const authorization = Effect.fnUntraced(function*(
  { caller, endpoint, id, payload }: BySomeAccount<typeof AuthorizationUpdate.Type | undefined>
) {
  const authzId = yield* recordId(AuthorizationId, id)
  const view = payload === undefined
    ? yield* authorizations.find(caller, authzId)
    : yield* authorizations.deactivate(caller, authzId)
  return json(
    200,
    authorizationObject(endpoint, view),
    view.status === "pending" ? { "retry-after": pendingRetryAfter } : {}
  )
})

/** Any JSON object triggers the validation. */
export const Trigger = Schema.Struct({})

/** RFC 8555 section 7.5.1. An empty payload only polls. */
export const challenge = Effect.fnUntraced(function*(
  { caller, endpoint, id, payload }: BySomeAccount<typeof Trigger.Type | undefined>
) {
  const challengeId = yield* recordId(ChallengeId, id)
  const found = payload === undefined
    ? yield* challenges.find(caller, challengeId)
    : yield* challenges.trigger(caller, challengeId)
  return json(200, challengeObject(endpoint, found), {
    link: `<${endpoint.authorization(found.authzId)}>;rel="up"`,
    ...(found.status === "processing" ? { "retry-after": pendingRetryAfter } : {})
  })
})

import { Effect, Schema } from "effect"
import type { Challenge } from "../../../domain/Challenge.ts"
import { AuthorizationId, ChallengeId } from "../../../domain/Id.ts"
import type { Answer } from "../../../kernel/http/Message.ts"
import { json } from "../../../kernel/http/Message.ts"
import type { Subject } from "../../../kernel/queue/Ends.ts"
import type { AuthorizationView } from "../../../operations/authorization/Authorizations.ts"
import * as authorizations from "../../../operations/authorization/Authorizations.ts"
import * as challenges from "../../../operations/authorization/Challenges.ts"
import type { Endpoint } from "../Endpoint.ts"
import type { BySomeAccount } from "../Signed.ts"
import { polled } from "../Unsettled.ts"
import { authorizationObject, challengeObject } from "../Wire.ts"
import { recordId } from "./RecordId.ts"

const pendingRetryAfter = "1"

export const AuthorizationUpdate = Schema.Struct({ status: Schema.Literal("deactivated") })

/** The job that a challenge in `processing` waits for. */
const validationOf = ({ id, status }: Pick<Challenge, "id" | "status">): Subject | undefined =>
  status === "processing" ? { kind: "challenge_validate", dedupKey: id } : undefined

const authorizationAnswer = (endpoint: Endpoint, view: AuthorizationView): Answer =>
  json(
    200,
    authorizationObject(endpoint, view),
    view.status === "pending" ? { "retry-after": pendingRetryAfter } : {}
  )

/** RFC 8555 sections 7.5 and 7.5.2; only the latter has a payload. */
export const authorization = Effect.fnUntraced(function*(
  { caller, endpoint, id, payload }: BySomeAccount<typeof AuthorizationUpdate.Type | undefined>
) {
  const authzId = yield* recordId(AuthorizationId, id)
  if (payload !== undefined) return authorizationAnswer(endpoint, yield* authorizations.deactivate(caller, authzId))
  return yield* polled(Effect.map(authorizations.find(caller, authzId), (view) => ({
    answer: authorizationAnswer(endpoint, view),
    awaits: view.status === "pending" ? view.challenges.map(validationOf).find((one) => one !== undefined) : undefined
  })))
})

/** Any JSON object triggers the validation. */
export const Trigger = Schema.Struct({})

const challengeAnswer = (endpoint: Endpoint, found: Challenge): Answer =>
  json(200, challengeObject(endpoint, found), {
    link: `<${endpoint.authorization(found.authzId)}>;rel="up"`,
    ...(found.status === "processing" ? { "retry-after": pendingRetryAfter } : {})
  })

/** RFC 8555 section 7.5.1. An empty payload only polls. */
export const challenge = Effect.fnUntraced(function*(
  { caller, endpoint, id, payload }: BySomeAccount<typeof Trigger.Type | undefined>
) {
  const challengeId = yield* recordId(ChallengeId, id)
  if (payload !== undefined) return challengeAnswer(endpoint, yield* challenges.trigger(caller, challengeId))
  return yield* polled(Effect.map(challenges.find(caller, challengeId), (found) => ({
    answer: challengeAnswer(endpoint, found),
    awaits: validationOf(found)
  })))
})

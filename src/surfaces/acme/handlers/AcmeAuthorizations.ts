import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Challenge } from "../../../domain/Challenge.ts"
import { AuthorizationId, ChallengeId } from "../../../domain/Id.ts"
import type { Answer } from "../../../engine/http/Message.ts"
import { json } from "../../../engine/http/Message.ts"
import type { AuthorizationView } from "../../../operations/acme/Authorizations.ts"
import * as authorizations from "../../../operations/acme/Authorizations.ts"
import * as challenges from "../../../operations/acme/Challenges.ts"
import { shareOfCaller } from "../../../operations/Caller.ts"
import type { Endpoint } from "../Endpoint.ts"
import type { Awaited, Polled } from "../PendingAnswer.ts"
import { begun, polled } from "../PendingAnswer.ts"
import type { BySomeAccount } from "../Posted.ts"
import { recordId } from "../Posted.ts"
import { authorizationObject, challengeObject } from "../Wire.ts"

/**
 * The pause between two polls. A running validation takes milliseconds, and only the client knows when it will request
 * a validation that has not begun.
 */
const pauseSeconds = 1

export const AuthorizationUpdate = Schema.Struct({ status: Schema.Literal("deactivated") })

const validationOf = (dedupKey: ChallengeId): Awaited => ({ kind: "challenge_validate", dedupKey, pauseSeconds })

/** Returns the job that a challenge in `processing` waits for. */
const awaitedBy = ({ id, status }: Pick<Challenge, "id" | "status">): Awaited | undefined =>
  status === "processing" ? validationOf(id) : undefined

const authorizationAnswer = (endpoint: Endpoint, view: AuthorizationView): Answer =>
  json(
    200,
    authorizationObject(endpoint, view),
    view.status === "pending" ? { "retry-after": String(pauseSeconds) } : {}
  )

/** Reads or deactivates an authorization (RFC 8555 sections 7.5 and 7.5.2). Only a deactivation has a payload. */
export const authorization = Effect.fnUntraced(function*(
  { caller, endpoint, id, payload }: BySomeAccount<typeof AuthorizationUpdate.Type | undefined>
) {
  const authzId = yield* recordId(AuthorizationId, id)
  if (payload !== undefined) return authorizationAnswer(endpoint, yield* authorizations.deactivate(caller, authzId))
  return yield* polled(Effect.map(authorizations.find(caller, authzId), (view) => ({
    answer: authorizationAnswer(endpoint, view),
    awaits: view.status === "pending" ? view.challenges.map(awaitedBy).find((one) => one !== undefined) : undefined
  })))
})

/** The payload that starts the validation: any JSON object. */
export const Trigger = Schema.Struct({})

const challengeAnswer = (endpoint: Endpoint, found: Challenge): Answer =>
  json(200, challengeObject(endpoint, found), {
    link: `<${endpoint.authorization(found.authzId)}>;rel="up"`
  })

const found = (endpoint: Endpoint, challenge: Challenge): Polled => ({
  answer: challengeAnswer(endpoint, challenge),
  awaits: awaitedBy(challenge)
})

/** Starts or polls the validation of a challenge (RFC 8555 section 7.5.1). An empty payload only polls. */
export const challenge = Effect.fnUntraced(function*(
  { caller, endpoint, id, payload }: BySomeAccount<typeof Trigger.Type | undefined>
) {
  const challengeId = yield* recordId(ChallengeId, id)
  const read = Effect.map(challenges.find(caller, challengeId), (one) => found(endpoint, one))
  if (payload === undefined) {
    return yield* polled(read, [{ ...validationOf(challengeId), share: shareOfCaller(caller) }])
  }
  const triggered = challenges.trigger(caller, challengeId)
  return yield* begun(Effect.map(triggered, (one) => ({ ...found(endpoint, one), isFirst: one.isBegun })), {
    limitMillis: endpoint.profile.challenge.answer_wait_ms,
    read
  })
})

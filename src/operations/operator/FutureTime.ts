import * as Effect from "effect/Effect"
import { BadRequest } from "../../domain/OperatorError.ts"
import { currentSeconds, rfc3339 } from "../../engine/Time.ts"

/** Refuses a member whose time, in epoch seconds, has passed. Without a time nothing is refused. */
export const checkFuture = Effect.fnUntraced(function*(member: string, at: number | undefined) {
  if (at === undefined || at > (yield* currentSeconds)) return
  return yield* new BadRequest({ member, detail: `takes a time in the future; ${rfc3339(at)} has passed.` })
})

import * as Effect from "effect/Effect"
import { currentSeconds } from "../../../engine/Time.ts"
import * as loginAttempts from "../../../store/operators/LoginAttempts.ts"
import { concern, counted } from "./Concern.ts"

/* What sign-ins of operators need attention for. */

const quarterSeconds = 900
/** A typing error is no reason for attention. */
const leastCodes = 3

/** Returns the concerns about sign-ins. Nobody is named, because only admins may see who the operators are. */
export const signInConcerns = Effect.gen(function*() {
  const { count, since } = yield* loginAttempts.wrongCodes({
    since: (yield* currentSeconds) - quarterSeconds,
    least: leastCodes
  })
  if (count === 0) return []
  return [concern("second_factor_refused", {
    title: `Somebody with the password of an operator entered ${counted(count, "wrong code")}`,
    effect: "Either the operator has lost the second factor, or somebody else knows the password.",
    count,
    since,
    way: { label: "Show the operators", path: "/ui/operators", command: "admin user list" }
  })]
})

import { Effect } from "effect"
import { isOperatorError, operatorProblemOf } from "../../domain/OperatorProblem.ts"
import type { Config } from "../../settings/AppConfig.ts"
import type { Failure } from "./Route.ts"

/* What the pages of lists share. */

/** A page of rows as operations answer it. */
interface Found<A> {
  readonly items: ReadonlyArray<A>
  readonly total: number
  readonly truncated?: boolean
}

/** The rows; or none and why, so that the list says so beside its filters. */
export const orRefused = <A, E extends Failure, R>(self: Effect.Effect<Found<A>, E, R>) =>
  Effect.matchEffect(self, {
    onSuccess: ({ items, total, truncated = false }) =>
      Effect.succeed({ items, total, isCut: truncated, problem: undefined }),
    onFailure: (failure) => {
      if (!isOperatorError(failure)) return Effect.fail(failure)
      const { code, message, status } = operatorProblemOf(failure)
      return Effect.succeed({
        items: [] as ReadonlyArray<A>,
        total: 0,
        isCut: false,
        problem: { code, message, status }
      })
    }
  })

/** The names of the profiles that are served. */
export const profilesOf = ({ profiles }: Config): ReadonlyArray<string> =>
  profiles.filter(({ enabled }) => enabled).map(({ name }) => name)

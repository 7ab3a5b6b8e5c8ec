import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { operatorProblemOf } from "../../domain/OperatorProblem.ts"
import type { Config } from "../../settings/AppConfig.ts"
import type { Failure } from "../operator/gate/Failures.ts"
import { orRefusal } from "./RefusedPage.ts"

/* The parts that pages of lists share. */

/** A page of rows, as operations return it. */
interface Found<A> {
  readonly items: ReadonlyArray<A>
  readonly total: number
  readonly truncated?: boolean
}

/** The rows of a list. If the operation refuses, there are no rows, and the list shows the refusal beside its filters. */
export const orRefused = <A, E extends Failure, R>(self: Effect.Effect<Found<A>, E, R>) =>
  Effect.map(orRefusal(self), (found) => {
    if (Result.isSuccess(found)) {
      const { items, total, truncated = false } = found.success
      return { items, total, isCut: truncated, problem: undefined }
    }
    return { items: [] as ReadonlyArray<A>, total: 0, isCut: false, problem: operatorProblemOf(found.failure) }
  })

/** The directory URLs of the profiles that are served. */
export const directoriesOf = ({ profiles, server }: Config): ReadonlyArray<string> =>
  profiles.filter(({ enabled }) => enabled).map(({ name }) => `${server.base_url}/profile/${name}/directory`)

/** The names of the profiles that are served. */
export const profilesOf = ({ profiles }: Config): ReadonlyArray<string> =>
  profiles.filter(({ enabled }) => enabled).map(({ name }) => name)

import * as Data from "effect/Data"
import type { Subproblem } from "../../../domain/JobFailure.ts"
import type { Identifier } from "../../../domain/ProblemDocument.ts"

/** A later attempt may succeed: no answer, 5xx, a limit, or a nonce that was never accepted. */
export class UpstreamUnavailable extends Data.TaggedError("UpstreamUnavailable")<{
  readonly detail: string
  readonly status: number | undefined
  /** Seconds that the upstream asks the client to wait. */
  readonly retryAfter?: number | undefined
  /**
   * The suffix of the problem type, if the answer was a problem document. It means that the upstream read the request
   * but did not act on it.
   */
  readonly type?: string
  /** Whether the request never left this host, so that it had no effect. */
  readonly unsent?: boolean
  /** The beginning of an answer that is not a problem document, such as a proxy's page. It is only for the log. */
  readonly excerpt?: string | undefined
  /** Whether the answer is too long to be read. */
  readonly isTooLong?: boolean
}> {}

/** A definite refusal. `type` is the suffix of the problem type, `detail` the upstream's own text. */
export class UpstreamRefused extends Data.TaggedError("UpstreamRefused")<{
  readonly detail: string
  readonly status: number | undefined
  readonly type: string
  /** The identifier that the problem is about. */
  readonly identifier?: Identifier | undefined
  readonly subproblems?: ReadonlyArray<Subproblem>
}> {}

/** Returns whether the upstream asks for fewer requests. */
export const isLimit = ({ status, type }: UpstreamUnavailable): boolean => status === 429 || type === "rateLimited"

export type UpstreamFailed = UpstreamUnavailable | UpstreamRefused

import * as Data from "effect/Data"
import type { Subproblem } from "../../../domain/JobFailure.ts"
import type { Identifier } from "../../../domain/ProblemDocument.ts"

/**
 * A failure after which a later attempt may succeed: no answer, a 5xx, a limit, or a nonce that was refused each time.
 */
export class UpstreamUnavailable extends Data.TaggedError("UpstreamUnavailable")<{
  readonly detail: string
  readonly status: number | undefined
  /** The number of seconds that the upstream asks the client to wait. */
  readonly retryAfter?: number | undefined
  /**
   * The suffix of the problem type, if the answer was a problem document. If present, the upstream has read the request
   * but has not acted on it.
   */
  readonly type?: string
  /** Whether the request never left this host. If so, it had no effect. */
  readonly unsent?: boolean
  /** The beginning of an answer that is not a problem document, such as the page of a proxy. It is only for the log. */
  readonly excerpt?: string | undefined
  /** Whether the answer is too long to be read. */
  readonly isTooLong?: boolean
}> {}

/** A definite refusal. `type` is the suffix of the problem type. `detail` is the upstream's own text. */
export class UpstreamRefused extends Data.TaggedError("UpstreamRefused")<{
  readonly detail: string
  readonly status: number | undefined
  readonly type: string
  /** The identifier that the problem is about. */
  readonly identifier?: Identifier | undefined
  readonly subproblems?: ReadonlyArray<Subproblem>
}> {}

/** Returns whether the upstream asks the client to send fewer requests. */
export const isLimit = ({ status, type }: UpstreamUnavailable): boolean => status === 429 || type === "rateLimited"

export type UpstreamFailed = UpstreamUnavailable | UpstreamRefused

import { Data } from "effect"

/** It may go better another time: no answer, 5xx, a limit, a nonce that is never taken. */
export class UpstreamUnavailable extends Data.TaggedError("UpstreamUnavailable")<{
  readonly detail: string
  readonly status: number | undefined
  /** Seconds the upstream asks to be left alone for. */
  readonly retryAfter?: number | undefined
  /** The request never left this host, so that nothing came of it. */
  readonly unsent?: boolean
}> {}

/** A definite no. `type` is the suffix of the problem type, `detail` the upstream's own text. */
export class UpstreamRefused extends Data.TaggedError("UpstreamRefused")<{
  readonly detail: string
  readonly status: number | undefined
  readonly type: string
}> {}

export type UpstreamFailed = UpstreamUnavailable | UpstreamRefused

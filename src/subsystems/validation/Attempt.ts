import { Data } from "effect"

/** The part of the `challenge` section a validation obeys; keys and units are those of the configuration. */
export interface ChallengePolicy {
  /** Bound of one whole attempt: look-ups, connections, redirects and bodies. */
  readonly timeout_ms: number
  /** Addresses and CIDRs; deny wins. */
  readonly denied_addresses: ReadonlyArray<string>
  /** Addresses and CIDRs; empty allows whatever is not denied. */
  readonly allowed_addresses: ReadonlyArray<string>
  readonly http_01: {
    readonly port: number
    readonly https_port: number
    readonly follow_redirects: boolean
    readonly max_redirects: number
    readonly max_response_bytes: number
  }
}

/** The closed words that tell an operator's log why a challenge was refused. */
export type RefusalReason =
  | "resolve_failed"
  | "no_address"
  | "address_denied"
  | "connect_failed"
  | "tls_failed"
  | "exchange_failed"
  | "redirect_refused"
  | "redirect_loop"
  | "redirect_limit"
  | "timeout"
  | "status"
  | "body_too_large"
  | "body_mismatch"

/**
 * A check that ran and did not pass. `error` is the problem type a client may see (`protocol.md`, "Verdicts"); `reason`
 * and `detail` are for the log alone and never reach a client. `detail` holds neither token nor key authorization.
 */
export class ChallengeRefused extends Data.TaggedError("ChallengeRefused")<{
  readonly error: "connection" | "unauthorized" | "dns" | "incorrectResponse" | "tls"
  readonly reason: RefusalReason
  readonly detail: string
}> {}

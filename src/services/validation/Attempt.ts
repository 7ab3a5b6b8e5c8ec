import * as Data from "effect/Data"
import type * as Ref from "effect/Ref"
import type { ChallengeType } from "../../domain/Challenge.ts"
import type { DnsName } from "../../domain/Identifier.ts"
import type { ValidationReason } from "../../domain/ValidationCause.ts"
import { exhausted, isExhaustion } from "../../engine/host/Exhausted.ts"

/** The part of the `challenge` section that a validation uses. Keys and units are the same as in the configuration. */
export interface ChallengePolicy {
  /** Time limit of one whole attempt: look-ups, connections, redirects and bodies. */
  readonly timeout_ms: number
  /** Denied addresses and CIDRs. They take precedence over the allowed ones. */
  readonly denied_addresses: ReadonlyArray<string>
  /** Whether a validation may connect to the service's own host. */
  readonly allow_loopback: boolean
  /** Allowed addresses and CIDRs. An empty list allows everything that is not denied. */
  readonly allowed_addresses: ReadonlyArray<string>
  readonly http_01: {
    readonly port: number
    readonly https_port: number
    readonly follow_redirects: boolean
    readonly max_redirects: number
    readonly max_response_bytes: number
  }
  readonly tls_alpn_01: { readonly port: number }
}

/**
 * The proof to check: control of `identifier`, shown by presenting `keyAuthorization` or its digest (RFC 8555 section
 * 8.1).
 */
export interface ChallengeAttempt {
  readonly type: ChallengeType
  /** A base name, never a wildcard. */
  readonly identifier: DnsName
  /** Token, dot, thumbprint. */
  readonly keyAuthorization: string
  readonly challenge: ChallengePolicy
}

/** What an attempt is waiting for; the log has it when the attempt times out. */
export type Waiting = Ref.Ref<string>

/**
 * A check that ran and did not pass. `error` is the problem type that a client may see. `reason` and `detail` are for operators,
 * as `ValidationCause` says.
 */
export class ChallengeRefused extends Data.TaggedError("ChallengeRefused")<{
  readonly error: "connection" | "unauthorized" | "dns" | "incorrectResponse" | "tls"
  readonly reason: ValidationReason
  readonly detail: string
  /**
   * The number of records that were found, if a client may know it. The next member is the number of compared records.
   */
  readonly answers?: number
  readonly compared?: number
  /** Whether one of them has blanks or quotation marks around the expected value. */
  readonly hasBlanks?: boolean
}> {}

/**
 * This host lacked resources to run the check, or stalled during it. That says nothing about the client, so the check
 * must run again.
 */
export class ChallengePostponed extends Data.TaggedError("ChallengePostponed")<{
  readonly detail: string
  /**
   * Whether the attempt counts. A host that is always late is overloaded, and its attempts must not continue until the
   * order expires.
   */
  readonly isCounted?: boolean
}> {}

/**
 * If a timer is late by more than this number of milliseconds, the process or its host stalled, and the timeout says
 * nothing about the peer.
 */
const longestStall = 1000

/**
 * Returns the failure to report instead of a timeout that fired `late` milliseconds too late, or `undefined` if it
 * fired in time.
 */
export const stalled = (late: number): ChallengePostponed | undefined =>
  late > longestStall
    // After a pause, timers fire before answers that arrived long ago are read.
    ? new ChallengePostponed({ detail: `this process did nothing for ${late} ms`, isCounted: true })
    : undefined

/** Classifies a failure by its system error code: `refusal`, unless this host itself failed. */
export const unlessOwn = <E>(code: string | undefined, refusal: E): E | ChallengePostponed =>
  isExhaustion(code) ? new ChallengePostponed({ detail: exhausted(code) }) : refusal

/** Returns a refusal with the problem type `connection`. */
export const unreachable = (reason: ValidationReason, detail: string): ChallengeRefused =>
  new ChallengeRefused({ error: "connection", reason, detail })

import * as Data from "effect/Data"
import type * as Ref from "effect/Ref"
import type { ChallengeType } from "../../domain/Challenge.ts"
import type { DnsName } from "../../domain/Identifier.ts"
import type { ValidationReason } from "../../domain/ValidationCause.ts"
import { exhausted, isExhaustion } from "../../engine/host/Exhausted.ts"

/** The keys of the `challenge` section that a validation uses. Their names and units are those of the configuration. */
export interface ChallengePolicy {
  /** The time limit of one whole attempt, with its look-ups, connections, redirects and bodies. */
  readonly timeout_ms: number
  /** Denied addresses and CIDRs. An address that is both denied and allowed is denied. */
  readonly denied_addresses: ReadonlyArray<string>
  /** Whether a validation may connect to the service's own host. */
  readonly allow_loopback: boolean
  /** Allowed addresses and CIDRs. If the list is empty, everything that is not denied is allowed. */
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
 * The proof to check: whoever controls `identifier` presents `keyAuthorization` or its digest (RFC 8555 section 8.1).
 */
export interface ChallengeAttempt {
  readonly type: ChallengeType
  /** A base name, never a wildcard. */
  readonly identifier: DnsName
  /** The key authorization: the token, a dot and the thumbprint. */
  readonly keyAuthorization: string
  readonly challenge: ChallengePolicy
}

/** What an attempt is waiting for. If the attempt times out, the log says what this was. */
export type Waiting = Ref.Ref<string>

/**
 * The check ran, and the proof did not pass. `error` is the problem type that a client may see. `reason` and `detail`
 * are for operators, as `ValidationCause` says.
 */
export class ChallengeRefused extends Data.TaggedError("ChallengeRefused")<{
  readonly error: "connection" | "unauthorized" | "dns" | "incorrectResponse" | "tls"
  readonly reason: ValidationReason
  readonly detail: string
  /**
   * The number of records that were found, if a client may know this number. `compared` is the number of records that
   * were compared.
   */
  readonly answers?: number
  readonly compared?: number
  /** Whether a compared record has blanks or quotation marks around the expected value. */
  readonly hasBlanks?: boolean
}> {}

/**
 * This host lacked the resources to run the check, or stalled during the check. That says nothing about the client, so
 * the check must run again.
 */
export class ChallengePostponed extends Data.TaggedError("ChallengePostponed")<{
  readonly detail: string
  /**
   * Whether the postponed check counts as an attempt. If this host is always late, it is overloaded. Its postponed checks
   * are counted, so that the attempts end before the order expires.
   */
  readonly isCounted?: boolean
}> {}

/**
 * How many milliseconds late a timer may be. If a timer is later than that, the process or its host stalled, and the
 * timeout says nothing about the peer.
 */
const longestStall = 1000

/**
 * Returns the failure that replaces a timeout which came `late` milliseconds too late. Returns `undefined` if the
 * timeout came in time.
 */
export const stalled = (late: number): ChallengePostponed | undefined =>
  late > longestStall
    // After a pause, timers fire before the process reads answers that arrived long ago.
    ? new ChallengePostponed({ detail: `this process did nothing for ${late} ms`, isCounted: true })
    : undefined

/** Returns `refusal`, unless the system error code shows that this host itself failed. */
export const unlessOwn = <E>(code: string | undefined, refusal: E): E | ChallengePostponed =>
  isExhaustion(code) ? new ChallengePostponed({ detail: exhausted(code) }) : refusal

/** Returns a refusal with the problem type `connection`. */
export const unreachable = (reason: ValidationReason, detail: string): ChallengeRefused =>
  new ChallengeRefused({ error: "connection", reason, detail })

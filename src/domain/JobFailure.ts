import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Failure } from "../engine/queue/Outcome.ts"
import { cut, queueFailures, rowOf, Words } from "../engine/queue/Outcome.ts"

/*
 * Why jobs fail. The failures come from the queue or from operations (docs/contribute/decisions/job-outcomes.md,
 * "Failures").
 */

/** The profile is not served, or only another process serves it. */
export class ProfileNotServed extends Schema.TaggedClass<ProfileNotServed>()("ProfileNotServed", {
  profile: Schema.String
}) implements Failure {
  get text(): string {
    return `profile ${this.profile} is not mounted here`
  }
  get row(): string {
    return rowOf(ProfileNotServed, this)
  }
}

/** What an upstream reports about one identifier of an order (RFC 8555 section 6.7.1). */
const Subproblem = Schema.Struct({
  /** The suffix of the problem type. */
  type: Words,
  detail: Words,
  identifier: Schema.Struct({ type: Words, value: Words })
})
export type Subproblem = typeof Subproblem.Type

/** The signer did not sign, or did not revoke. */
export class SignerFailed extends Schema.TaggedClass<SignerFailed>()("SignerFailed", {
  cause: Schema.Literals([
    "lint_failed",
    "chain_rejected",
    "script_failed",
    "upstream_refused",
    "poll_timeout",
    "signer_failed"
  ]),
  detail: Words,
  /** The suffix of the problem type, if an upstream refused permanently, or temporarily with `rateLimited`. */
  problemType: Schema.optional(Words),
  subproblems: Schema.optional(Schema.Array(Subproblem)),
  /** The epoch second before which the upstream does not accept another request. */
  notBefore: Schema.optional(Schema.Int)
}) implements Failure {
  /** Whether the upstream refused a name of the order, not the whole order. */
  get isOfName(): boolean {
    return this.problemType === "rejectedIdentifier"
  }
  /** What the operator can do about the failure. */
  get #way(): string {
    return this.problemType === "badRevocationReason"
      ? "; signer.relay.revocation_reasons = false sends no reason to an upstream that takes none"
      : ""
  }
  get text(): string {
    return `${this.cause}: ${this.isOfName ? "rejectedIdentifier: " : ""}${this.detail}${this.#way}`
  }
  get row(): string {
    return rowOf(SignerFailed, this)
  }
}

/** There is nothing to revoke. */
export class CertificateMissing extends Schema.TaggedClass<CertificateMissing>()("CertificateMissing", {})
  implements Failure {
  get text(): string {
    return "the order has no certificate"
  }
  get row(): string {
    return rowOf(CertificateMissing, this)
  }
}

/** An operator cancelled the job while it waited. */
export class Cancelled extends Schema.TaggedClass<Cancelled>()("Cancelled", {}) implements Failure {
  get text(): string {
    return "cancelled by an operator"
  }
  get row(): string {
    return rowOf(Cancelled, this)
  }
}

/** This host currently lacks a resource that a validation needs. */
export class ValidationPostponed extends Schema.TaggedClass<ValidationPostponed>()("ValidationPostponed", {
  detail: Words
}) implements Failure {
  get text(): string {
    return this.detail
  }
  get row(): string {
    return rowOf(ValidationPostponed, this)
  }
}

/** No profile of this process uses the CA of the revocation list. */
export class IssuerNotServed extends Schema.TaggedClass<IssuerNotServed>()("IssuerNotServed", {
  issuer: Schema.String
}) implements Failure {
  get text(): string {
    return `no profile here signs with the CA ${this.issuer}`
  }
  get row(): string {
    return rowOf(IssuerNotServed, this)
  }
}

/** A revocation list could not be made. */
export class ListNotSigned extends Schema.TaggedClass<ListNotSigned>()("ListNotSigned", { detail: Words })
  implements Failure {
  get text(): string {
    return this.detail
  }
  get row(): string {
    return rowOf(ListNotSigned, this)
  }
}

/** Each time this worker had signed a list, another worker had already stored one. */
export class ListsOvertaken extends Schema.TaggedClass<ListsOvertaken>()("ListsOvertaken", {}) implements Failure {
  get text(): string {
    return "other workers stored their lists first"
  }
  get row(): string {
    return rowOf(ListsOvertaken, this)
  }
}

/** A notification was not delivered to its receiver. */
export class NotDelivered extends Schema.TaggedClass<NotDelivered>()("NotDelivered", {
  detail: Words,
  /** The status that an HTTP or SMTP server answered. */
  status: Schema.optional(Schema.Int)
}) implements Failure {
  get text(): string {
    return this.detail
  }
  get row(): string {
    return rowOf(NotDelivered, this)
  }
}

/** The receiver is in the configuration of another process, or no longer in any configuration. */
export class TargetNotServed extends Schema.TaggedClass<TargetNotServed>()("TargetNotServed", {
  scope: Schema.String,
  target: Schema.String
}) implements Failure {
  get text(): string {
    return `${this.target} of ${this.scope} is not configured here`
  }
  get row(): string {
    return rowOf(TargetNotServed, this)
  }
}

/** Every failure of a job, in the form in which a row stores it. */
export const JobFailure = Schema.Union([
  ...queueFailures,
  ProfileNotServed,
  SignerFailed,
  CertificateMissing,
  Cancelled,
  ValidationPostponed,
  IssuerNotServed,
  ListNotSigned,
  ListsOvertaken,
  NotDelivered,
  TargetNotServed
])

export type JobFailure = typeof JobFailure.Type

const read = Schema.decodeUnknownOption(Schema.fromJsonString(JobFailure))

/**
 * Reads the failure in the row of a job, for callers that wait for a job of another process. Returns `undefined` if the
 * failure cannot be read.
 */
export const readFailure = (row: string | undefined): JobFailure | undefined => Option.getOrUndefined(read(row))

/**
 * Returns the text of `jobs.last_error` for operators. Older versions stored plain text, and a newer version may store
 * failures that this version does not know. A value that cannot be decoded is shown unchanged
 * (docs/contribute/decisions/compatibility.md, "Neighbours").
 */
export const shown = (row: string): string =>
  Option.match(read(row), { onNone: () => row, onSome: ({ text }) => cut(text) })

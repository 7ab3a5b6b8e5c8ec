/** The beginning of the URN of problem types (RFC 8555 section 6.7). */
export const acmeError = "urn:ietf:params:acme:error:"

/** The identifier object of the protocol. */
export interface Identifier {
  readonly type: string
  readonly value: string
}

/**
 * A problem document (RFC 7807 and RFC 8555 section 6.7), as it is sent and as it is stored in `orders.error` and
 * `challenges.error`. A problem that is not about ACME has no type (docs/contribute/decisions/acme-surface.md, "Problem
 * types").
 */
export interface ProblemDocument {
  readonly type?: string
  readonly status: number
  readonly detail: string
  /** The URL at which a person must act (RFC 8555 section 6.7). */
  readonly instance?: string
  readonly identifier?: Identifier
  readonly algorithms?: ReadonlyArray<string>
  readonly subproblems?: ReadonlyArray<
    { readonly type: string; readonly detail: string; readonly identifier: Identifier }
  >
}

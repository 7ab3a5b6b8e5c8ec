import * as Data from "effect/Data"
import * as Result from "effect/Result"

/**
 * Why a CSR is refused: the `reason` of `csr_rejected`. Only callers use the reasons from `weak_key` to `account_key`.
 */
export type CsrReason =
  | "undecodable"
  | "signature"
  | "signature_algorithm"
  | "digest"
  | "key_type"
  | "unrequested"
  | "key_size"
  | "exponent"
  | "weak_key"
  | "blocked_key"
  | "burnt_key"
  | "account_key"
  | "san_missing"
  | "san_extra"
  | "san_type"
  | "common_name"

/** A CSR is refused. `detail` is a sentence for the client. Of the CSR it shows only names. */
export class CsrRefused extends Data.TaggedError("CsrRefused")<{
  readonly reason: CsrReason
  readonly detail: string
}> {}

/** Returns a refusal as a failed `Result`. */
export const refuse = (reason: CsrReason, detail: string) => Result.fail(new CsrRefused({ reason, detail }))

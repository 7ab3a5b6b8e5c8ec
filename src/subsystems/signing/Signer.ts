import { Context, Data } from "effect"
import type { Effect } from "effect"
import type { CrlSigner } from "../crypto/Crl.ts"
import type { Csr } from "../crypto/Csr.ts"

/** What a backend is asked to sign. The CSR has been checked against the order; times are epoch seconds. */
export interface IssueRequest {
  readonly orderId: string
  readonly csr: Csr
  /** In the order's identifier order. */
  readonly names: ReadonlyArray<string>
  readonly notBefore: number | undefined
  readonly notAfter: number | undefined
}

/** A certificate ready to be stored. */
export interface Issued {
  /** PEM, leaf first. */
  readonly chain: string
  /** Lower-case hexadecimal without leading zero octets. */
  readonly serial: string
  /** Epoch seconds. */
  readonly notAfter: number
}

/** The backend says the CSR is at fault: the order ends `invalid` with badCSR. */
export class CsrRejected extends Data.TaggedError("CsrRejected")<{ readonly detail: string }> {}

/** Anything else went wrong; the attempt may be repeated. `cause` is the word for the audit trail. */
export class SigningFailed extends Data.TaggedError("SigningFailed")<{
  readonly cause: "lint_failed" | "chain_rejected" | "script_failed" | "signer_failed"
  readonly detail: string
}> {}

/** A CA that publishes a revocation list. */
export interface CrlIssuer {
  /** Lower-case hexadecimal SHA-256 of the CA's SubjectPublicKeyInfo. */
  readonly id: string
  readonly sign: CrlSigner
  /** `signer.local_ca.crl_path`: where the list is exported to. */
  readonly path: string
}

/** One backend. Only a process with the worker role holds one. */
export interface Signer {
  readonly issue: (request: IssueRequest) => Effect.Effect<Issued, CsrRejected | SigningFailed>
  /**
   * Present where somebody else keeps what was revoked. Takes the DER of a leaf and an RFC 5280 code; succeeds for a leaf
   * that is revoked already.
   */
  readonly revoke?: (leaf: Uint8Array, reason: number | undefined) => Effect.Effect<void, SigningFailed>
  /** Present where this service itself publishes what was revoked. */
  readonly crl?: CrlIssuer
}

/** The profile is not served by this process. */
export class ProfileNotMounted extends Data.TaggedError("ProfileNotMounted")<{ readonly profile: string }> {}

/** The signing backends of the mounted profiles; identical `signer` sections share one. */
export class Signers extends Context.Tag("acme/subsystems/signing/Signers")<Signers, {
  readonly of: (profile: string) => Effect.Effect<Signer, ProfileNotMounted>
  /** Every CA of the mounted profiles that publishes a list, once each. */
  readonly crlIssuers: ReadonlyArray<CrlIssuer>
  /** Each backend once, by the text of its section: what the next configuration may go on using. */
  readonly bySection: ReadonlyMap<string, Signer>
}>() {}

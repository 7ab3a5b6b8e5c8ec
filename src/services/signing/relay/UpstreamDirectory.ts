/* What an upstream offers, and what the relay can request there (RFC 8555 section 7.1.1). */

/** The members of the directory that the relay uses. */
export interface Directory {
  readonly newNonce: string
  readonly newAccount: string
  readonly newOrder: string
  /** Absent if the upstream does not accept revocations. */
  readonly revokeCert: string | undefined
  readonly keyChange: string | undefined
  /** Absent if the upstream has no renewal information (RFC 9773). */
  readonly renewalInfo: string | undefined
  readonly termsOfService: string | undefined
  /** The names of the certificate profiles that the upstream offers (draft-ietf-acme-profiles). */
  readonly profiles: ReadonlyArray<string>
}

/** The operation of a request, and the label `operation` of its series. */
export type Operation =
  | "directory"
  | "newNonce"
  | "newAccount"
  | "account"
  | "orders"
  | "newOrder"
  | "order"
  | "authorization"
  | "challenge"
  | "finalize"
  | "certificate"
  | "revokeCert"
  | "renewalInfo"
  | "keyChange"

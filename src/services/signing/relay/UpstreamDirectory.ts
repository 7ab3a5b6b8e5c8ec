/* What an upstream offers, and what is asked of it (RFC 8555 section 7.1.1). */

/** The members of the directory that the relay uses. */
export interface Directory {
  readonly newNonce: string
  readonly newAccount: string
  readonly newOrder: string
  /** Absent where the upstream takes no revocations. */
  readonly revokeCert: string | undefined
  readonly keyChange: string | undefined
  /** Absent where the upstream has no renewal information (RFC 9773). */
  readonly renewalInfo: string | undefined
  readonly termsOfService: string | undefined
}

/** What a request is about, and the label `operation` of its series. */
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

/** The facts that clients learned and that the service must keep. Ids have the form that they have in URLs. */
export class Ledger {
  /** Accounts whose creation was answered. */
  readonly accounts = new Set<string>()
  /** Accounts whose deactivation was answered. */
  readonly deactivated = new Set<string>()
  /** Orders whose creation was answered, with their names. */
  readonly orders = new Map<string, ReadonlyArray<string>>()
  /** Orders whose finalize was accepted. */
  readonly finalized = new Set<string>()
  /** Orders whose certificate was handed out, with its serial number. */
  readonly certificates = new Map<string, string>()
  /** Serial numbers of certificates whose revocation was answered. */
  readonly revoked = new Set<string>()
  /** What a credential permits since the last change that was acknowledged, unless a later one was not. */
  readonly grants = new Map<string, string>()
  /** Credentials whose deletion was acknowledged. */
  readonly deleted = new Set<string>()
  /** CAs whose declaration as compromised was acknowledged. */
  readonly compromised = new Set<string>()
  /** Every nonce that was handed out. */
  readonly nonces = new Set<string>()
  /** Nonces of accepted requests. */
  readonly spent = new Set<string>()

  /** The number of answers that the service must keep. */
  get acknowledged(): number {
    return this.accounts.size + this.deactivated.size + this.orders.size + this.finalized.size +
      this.certificates.size + this.revoked.size + this.grants.size + this.deleted.size +
      this.compromised.size
  }
}

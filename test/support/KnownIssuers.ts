import type { Issuer, Issuers } from "../../src/services/signing/Issuers.ts"

/** Returns the CAs of profiles that have at most one CA each. */
export const issuersOf = (of: (profile: string) => Issuer | undefined): Issuers["Service"] => ({
  bySection: new Map(),
  unread: [],
  of,
  all: (profile) => {
    const issuer = of(profile)
    return issuer === undefined ? [] : [{ from: Number.NEGATIVE_INFINITY, issuer }]
  }
})

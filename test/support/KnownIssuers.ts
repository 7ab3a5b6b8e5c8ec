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

const end = 4_102_444_800

/** The facts of a CA whose certificate nobody reads. It may issue for every name. */
export const someIssuer: Issuer = {
  id: "ab",
  certificate: new Uint8Array(),
  anchorPem: "",
  ledgerPath: "/nowhere",
  subject: "CN=CA",
  sha256: "cd",
  keyType: "ecdsa-p256",
  keySource: "file",
  nameConstraints: [],
  notBefore: 0,
  notAfter: end,
  firstToEnd: { notAfter: end, subject: "CN=CA" }
}

/** Returns the name constraints of a CA that limit only DNS names. */
export const dnsConstraints = (
  { excluded = [], permitted }: {
    readonly permitted?: ReadonlyArray<string>
    readonly excluded?: ReadonlyArray<string>
  }
): Issuer["nameConstraints"] => [{ permitted, excluded, permittedSubjects: undefined, excludedSubjects: [] }]

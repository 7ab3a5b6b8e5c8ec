import * as Result from "effect/Result"
import { readCertificate } from "./Certificate.ts"
import { readStoredChain } from "./Chain.ts"
import type { Csr } from "./Csr.ts"

/** The names of extensions that requests may ask for (RFC 5280 section 4.2, RFC 7633). */
const extensionNames: { readonly [oid: string]: string } = {
  "1.3.6.1.5.5.7.1.1": "authorityInfoAccess",
  "1.3.6.1.5.5.7.1.24": "must-staple",
  "1.3.6.1.5.5.7.48.1.5": "ocspNoCheck",
  "2.5.29.15": "keyUsage",
  "2.5.29.18": "issuerAltName",
  "2.5.29.19": "basicConstraints",
  "2.5.29.30": "nameConstraints",
  "2.5.29.31": "cRLDistributionPoints",
  "2.5.29.32": "certificatePolicies",
  "2.5.29.35": "authorityKeyIdentifier",
  "2.5.29.37": "extKeyUsage"
}

/** The highest number of extensions that are named. No honest request asks for more. */
const mostNamed = 10

/**
 * Returns the extensions that a request asks for but its certificate lacks, at most ten. Each is given by its name, or
 * by its OID if it has no name here.
 */
export const notGranted = ({ extensions }: Csr, chainPem: string): ReadonlyArray<string> => {
  if (extensions.length === 0) return []
  const leaf = readStoredChain(chainPem)?.leaf
  const read = leaf === undefined ? undefined : Result.getOrUndefined(readCertificate(leaf))
  if (read === undefined) return []
  const given = new Set(read.extensions.map(({ oid }) => oid))
  return extensions.filter((oid) => !given.has(oid)).slice(0, mostNamed).map((oid) => extensionNames[oid] ?? oid)
}

import * as Result from "effect/Result"
import type { DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"
import { readCertificate } from "./Certificate.ts"
import { readStoredChain } from "./Chain.ts"
import type { Csr } from "./Csr.ts"
import { purposeWord } from "./KeyPurpose.ts"

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

const EXTENDED_KEY_USAGE = "2.5.29.37"

/** Reads the content of an extendedKeyUsage: its OIDs, each once (RFC 5280 section 4.2.1.12). */
export const readPurposes = (reader: DerReader): ReadonlyArray<string> => {
  const found = new Set<string>()
  const list = reader.enter(Tag.sequence)
  while (list.more) found.add(list.oid())
  return [...found]
}

/** Returns the OIDs of the usages of the first certificate in a chain. Returns an empty list if it has none. */
export const leafUsages = (chainPem: string): ReadonlyArray<string> => {
  const leaf = readStoredChain(chainPem)?.leaf
  const read = leaf === undefined ? undefined : Result.getOrUndefined(readCertificate(leaf))
  const usage = read?.extensions.find(({ oid }) => oid === EXTENDED_KEY_USAGE)
  return usage === undefined ? [] : Result.getOrElse(decode(usage.value, readPurposes), () => [])
}

/**
 * Returns the extensions that a request asks for but its certificate lacks, at most ten. Each is given by its name, or
 * by its OID if it has no name here. `usages` are the usages of the certificate, if the request asks for any; each
 * requested usage that it lacks is listed as `extKeyUsage` with the usage.
 */
export const notGranted = (
  csr: Csr,
  chainPem: string,
  usages?: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const { extensions } = csr
  if (extensions.length === 0) return []
  const leaf = readStoredChain(chainPem)?.leaf
  const read = leaf === undefined ? undefined : Result.getOrUndefined(readCertificate(leaf))
  if (read === undefined) return []
  const given = new Set(read.extensions.map(({ oid }) => oid))
  const lacking = extensions.filter((oid) => !given.has(oid)).map((oid) => extensionNames[oid] ?? oid)
  const asked = usages === undefined ? undefined : requestedUsages(csr)
  const without = asked === undefined || asked === "unreadable" || usages === undefined
    ? []
    : asked.filter((oid) => !usages.includes(oid)).map((oid) => `extKeyUsage ${purposeWord(oid)}`)
  return [...lacking, ...without].slice(0, mostNamed)
}

/**
 * Returns the OIDs of the usages that a request asks for, without duplicates. Returns `undefined` if it asks for none,
 * and `unreadable` if its extKeyUsage is empty, occurs twice or is not DER of RFC 5280 section 4.2.1.12.
 */
const requestedUsages = ({ usages }: Csr): ReadonlyArray<string> | "unreadable" | undefined => {
  const [first, second] = usages
  if (first === undefined) return undefined
  const read = decode(first, readPurposes)
  return second === undefined && Result.isSuccess(read) && read.success.length > 0 ? read.success : "unreadable"
}

/** How many OIDs of a request are shown. */
const mostShown = 5

/** Returns whether a request asks for a usage, which is given as an OID. */
export const asksForUsage = (csr: Csr, usage: string): boolean => {
  const asked = requestedUsages(csr)
  return asked !== undefined && asked !== "unreadable" && asked.includes(usage)
}

/** Returns the usages that a request asks for, as words for operators. */
export const requestedWords = (csr: Csr): ReadonlyArray<string> => {
  const asked = requestedUsages(csr) ?? []
  return asked === "unreadable" ? [asked] : asked.slice(0, mostNamed).map((oid) => purposeWord(oid).slice(0, 80))
}

const listed = (oids: ReadonlyArray<string>, wordOf: (oid: string) => string): string =>
  oids.slice(0, mostShown).map((oid) => wordOf(oid).slice(0, 80)).join(", ") +
  (oids.length > mostShown ? ` and ${oids.length - mostShown} more` : "")

/** What a kind of certificate says about the requests for it. */
export interface Granting {
  readonly name: string
  readonly usages: ReadonlyArray<string>
  readonly policies: ReadonlyArray<string>
  readonly unrequested: "ignore" | "refuse" | "refuse_all"
}

/** The extensions that every leaf has. No leaf has a basicConstraints, so a request that asks for a CA asks for more. */
const usualExtensions: ReadonlyArray<string> = ["2.5.29.14", "2.5.29.15", "2.5.29.17", "2.5.29.35", "2.5.29.37"]

/**
 * Returns why a kind of certificate refuses a request, as a sentence for the client, or `undefined` if it does not. A
 * request is refused if it asks only for usages that the kind lacks, and for `refuse_all` also if it asks for any other
 * extension that its certificate would lack.
 */
export const unrequestedFault = (csr: Csr, granting: Granting): string | undefined => {
  const { name, policies, unrequested, usages } = granting
  if (unrequested === "ignore") return undefined
  const asked = requestedUsages(csr)
  if (asked === "unreadable") {
    return csr.usages.length > 1
      ? "The CSR requests more than one extKeyUsage."
      : "The extKeyUsage that the CSR requests is not a list of purposes."
  }
  if (asked !== undefined && !asked.some((oid) => usages.includes(oid))) {
    return `The CSR asks for the usages ${listed(asked, purposeWord)}, but certificates of the kind ${name} are for ${
      listed(usages, purposeWord)
    }.`
  }
  if (unrequested === "refuse") return undefined
  const given = policies.length > 0 ? [...usualExtensions, "2.5.29.32"] : usualExtensions
  const lacking = csr.extensions.filter((oid) => !given.includes(oid))
  return lacking.length === 0
    ? undefined
    : `The CSR asks for ${
      listed(lacking, (oid) => extensionNames[oid] ?? oid)
    }, which certificates of the kind ${name} do not have.`
}

/** Returns whether the usages that a request asks for are exactly those that its certificate has, in any order. */
export const hasRequestedUsages = (csr: Csr, usages: ReadonlyArray<string>): boolean => {
  const asked = requestedUsages(csr)
  return asked === undefined ||
    (asked !== "unreadable" && asked.length === usages.length && asked.every((oid) => usages.includes(oid)))
}

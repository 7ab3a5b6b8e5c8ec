import { sha256 } from "../crypto/Digest.ts"
import { keyName } from "../crypto/keys/KeyName.ts"
import { kindName } from "./CertificateKind.ts"
import { isCovered } from "./CredentialScope.ts"
import type { AccountId } from "./Id.ts"
import type { DnsName } from "./Identifier.ts"
import type { OrderIdentifier } from "./Order.ts"

/*
 * A campaign asks clients to replace the certificates that a filter matches (docs/contribute/decisions/campaigns.md).
 */

/** The states of a campaign. A paused campaign asks nobody. */
export const campaignStates = ["running", "paused", "ended"] as const
export type CampaignState = (typeof campaignStates)[number]

/** How a certificate leaves a campaign. */
export const departures = ["replaced", "revoked", "expired"] as const
export type Departure = (typeof departures)[number]

/** Which certificates a campaign matches. An absent member matches every certificate. */
export interface CampaignFilter {
  /** The SHA-256 of the public key of the CA that signed the certificate, in lower-case hexadecimal. */
  readonly issuer?: string | undefined
  readonly profile?: string | undefined
  /** The name of the kind of certificate. */
  readonly kind?: string | undefined
  /** A kind of key in the form of {@link keyKind}. */
  readonly key?: string | undefined
  /** The id of the credential of the account. */
  readonly kid?: string | undefined
  readonly accountId?: AccountId | undefined
  /** A pattern of names, as in the scope of a credential. One name of the certificate must fit. */
  readonly name?: string | undefined
  /** Serial numbers in their stored form. */
  readonly serials?: ReadonlyArray<string> | undefined
  /** An epoch second. The order was placed before it. */
  readonly issuedBefore?: number | undefined
}

/** What the filter of a campaign looks at. */
export interface Candidate {
  readonly profile: string
  readonly accountId: AccountId
  readonly kid: string | undefined
  readonly kind: string | undefined
  readonly identifiers: ReadonlyArray<OrderIdentifier>
  readonly serial: string | undefined
  /** The public key as DER SubjectPublicKeyInfo. */
  readonly pubkey: Uint8Array | undefined
  readonly createdAt: number
  /** The id of the CA. Only read if the filter names a CA. */
  readonly issuer: () => string | undefined
}

/** The highest number of serial numbers of a filter. So many fit into the body of a request. */
export const mostSerials = 1500

/** The kinds of keys that a filter may name. `rsa` stands for every RSA key, `rsa-2048` for those of 2048 bits. */
export const keyKinds = "rsa, rsa-2048 (any length), ecdsa-p256, ecdsa-p384, ecdsa-p521, ed25519, ml-dsa-44, -65 or -87"

/** Returns a kind of key in lower case, or undefined if it is none. */
export const keyKind = (text: string): string | undefined => {
  const kind = text.trim().toLowerCase()
  return /^(?:rsa(?:-[1-9]\d{2,4})?|ecdsa-p(?:256|384|521)|ed25519|ml-dsa-(?:44|65|87))$/.test(kind) ? kind : undefined
}

const hasKey = (kind: string, pubkey: Uint8Array | undefined): boolean => {
  const name = pubkey === undefined ? undefined : keyName(pubkey)
  return name === kind || (kind === "rsa" && name?.startsWith("rsa-") === true)
}

/** Makes the test of a filter. The costly conditions come last. */
export const matcherOf = (filter: CampaignFilter): (candidate: Candidate) => boolean => {
  const { accountId, issuedBefore, issuer, key, kid, kind, name, profile, serials } = filter
  const conditions: Array<(candidate: Candidate) => boolean> = []
  if (profile !== undefined) conditions.push((one) => one.profile === profile)
  if (accountId !== undefined) conditions.push((one) => one.accountId === accountId)
  if (kid !== undefined) conditions.push((one) => one.kid === kid)
  if (kind !== undefined) conditions.push((one) => kindName(one.kind) === kind)
  if (issuedBefore !== undefined) conditions.push((one) => one.createdAt < issuedBefore)
  if (serials !== undefined) {
    const wanted = new Set(serials)
    conditions.push((one) => one.serial !== undefined && wanted.has(one.serial))
  }
  if (name !== undefined) {
    conditions.push((one) => one.identifiers.some(({ value }) => isCovered(value as DnsName, [name])))
  }
  if (key !== undefined) conditions.push((one) => hasKey(key, one.pubkey))
  if (issuer !== undefined) conditions.push((one) => one.issuer() === issuer)
  return (candidate) => conditions.every((condition) => condition(candidate))
}

/** How long a client may use renewal information (RFC 9773 section 4.3), in seconds. */
export const pollingSeconds = 21_600

/** A certificate counts as one whose client never asks after two polling intervals without a request. */
export const silentSeconds = 2 * pollingSeconds

/**
 * Returns the epoch second since which a client must have asked. Before a campaign has run for two polling intervals,
 * this is 0, which no request is before.
 */
export const silentBefore = ({ begunAt }: { readonly begunAt: number | undefined }, now: number): number =>
  begunAt === undefined || now - begunAt < silentSeconds ? 0 : now - silentSeconds

const hourSeconds = 3600

/**
 * Returns over how many seconds the renewals of a campaign are spread: over one polling interval, or as long as the
 * pace, in certificates an hour, needs.
 */
export const spanOf = (pace: number | undefined, matched: number): number =>
  pace === undefined ? pollingSeconds : Math.max(1, Math.ceil(matched * hourSeconds / pace))

const digits = 12

/** Returns where in the span a certificate has its place, from 0 to 1. The same certID always has the same place. */
const placeOf = (certId: string): number => Number.parseInt(sha256(certId).slice(0, digits), 16) / 16 ** digits

/**
 * Returns the window in which a client should renew a certificate, in epoch seconds. Windows last an hour, or as long
 * as the span if that is shorter. All of them lie within the span.
 */
export const windowFor = (
  { begunAt, spanSeconds }: { readonly begunAt: number; readonly spanSeconds: number },
  certId: string
): { readonly start: number; readonly end: number } => {
  const length = Math.max(1, Math.min(hourSeconds, spanSeconds))
  const start = begunAt + Math.floor(placeOf(certId) * Math.max(0, spanSeconds - length))
  return { start, end: start + length }
}

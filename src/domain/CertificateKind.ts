import type { LeafKey } from "../crypto/keys/LeafKeys.ts"
import type { LeafContent } from "../crypto/x509/LeafContent.ts"

/** The kind that always exists. An order without a stored kind is an order of this kind. */
export const defaultKind = "default"

/** Matches the names of kinds. */
export const kindPattern = /^[a-z0-9-]{1,32}$/

/** Where the common name of a certificate comes from. */
export const commonNameSources = ["request", "first", "never"] as const
export type CommonNameSource = (typeof commonNameSources)[number]

/** What happens if a CSR requests usages or other extensions that the certificate will not have. */
export const unrequestedWords = ["ignore", "refuse", "refuse_all"] as const
export type Unrequested = (typeof unrequestedWords)[number]

/**
 * A kind of certificate: what a certificate of an order contains, with every default filled in
 * (docs/reference/configuration.md, "certificates"). On the wire, a kind is a `profile` of draft-ietf-acme-profiles.
 */
export interface CertificateKind {
  readonly name: string
  /** The text that clients see in the directory. It may be empty. */
  readonly description: string
  /** The lifetime of a certificate of a local CA, in seconds. */
  readonly validitySeconds: number
  /** The usages, the policies and the fixed subject. For a relay or a program, these are only what it may issue. */
  readonly content: LeafContent
  /** The keys that can be certified. */
  readonly keys: ReadonlyArray<LeafKey>
  readonly commonName: CommonNameSource
  readonly unrequested: Unrequested
  /** The profile that a relay requests from its upstream. Empty if it requests none. */
  readonly upstream: string
  /**
   * Whether a version that knows no kinds makes the same certificates. Such a version does not run the jobs of orders
   * of other kinds.
   */
  readonly isPlain: boolean
}

/** The kinds of one profile. */
export interface CertificateKinds {
  /** Every kind by its name, `default` among them. */
  readonly byName: ReadonlyMap<string, CertificateKind>
  /** The kind that an order gets if it names no kind. */
  readonly chosen: CertificateKind
  /** Whether the directory offers the kinds, because there are several or because the only one has a description. */
  readonly isOffered: boolean
}

/** Returns the kind, with a lifetime of at most `bound` seconds if there is a bound. */
export const boundedKind = (kind: CertificateKind, bound: number | undefined): CertificateKind =>
  bound === undefined || bound >= kind.validitySeconds ? kind : { ...kind, validitySeconds: bound }

/**
 * How many seconds after its creation an order of an unknown kind may be ended. Before that, a rolling reload may be in
 * progress: another process may know the kind already.
 */
export const rollingReloadSeconds = 120

/** Returns the stored name of a kind: nothing for the kind `default`. */
export const storedKind = (name: string): string | undefined => name === defaultKind ? undefined : name

/** Returns the name of a stored kind. */
export const kindName = (stored: string | undefined): string => stored ?? defaultKind

/** Returns the kind with a stored name, or undefined if a reload has removed it. */
export const kindOfOrder = (kinds: CertificateKinds, stored: string | undefined): CertificateKind | undefined =>
  kinds.byName.get(kindName(stored))

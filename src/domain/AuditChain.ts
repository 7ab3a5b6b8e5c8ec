import { sha256 } from "../crypto/Digest.ts"

/*
 * The form of the chain of the audit trail: how a row becomes a leaf, how leaves become a link, and what is signed
 * (docs/contribute/decisions/audit-chain.md). Everything here is the same for both databases, and must never change for
 * links that exist. A new form needs a new version in its text.
 */

/** The columns of a row that are hashed, in the order of their names. The id is a part of the leaf. */
export const hashedColumns = [
  "account_id",
  "actor_id",
  "actor_kind",
  "cert_serial",
  "client_ip",
  "client_ptr",
  "created_at",
  "detail",
  "event",
  "identifiers",
  "order_id",
  "outcome",
  "profile",
  "reason",
  "request_id",
  "user_agent"
] as const

/** The values of a row, each as text. NULL is `undefined`. */
export type HashedValues = { readonly [C in (typeof hashedColumns)[number]]: string | undefined }

/**
 * Returns the SHA-256 of the values of a row, in hexadecimal. The values are a JSON object, in the order of the names.
 * A column that is NULL is left out, so that a later version can add a column without changing the hashes of old rows.
 */
export const hashOfRow = (values: HashedValues): string =>
  sha256(
    `acme-svc audit row 1\n${JSON.stringify(Object.fromEntries(hashedColumns.map((name) => [name, values[name]])))}`
  )

/** A row of the trail, as the chain remembers it. */
export interface Leaf {
  readonly id: number
  /** The time of the row, in epoch seconds. */
  readonly createdAt: number
  readonly hash: string
}

/** The number of octets of a stored leaf. */
export const leafOctets = 48

/** Returns the stored form of leaves: for each leaf the id and the time in eight octets each, and the hash. */
const packLeaves = (leaves: ReadonlyArray<Leaf>): Buffer => {
  const packed = Buffer.alloc(leaves.length * leafOctets)
  leaves.forEach(({ createdAt, hash, id }, index) => {
    const at = index * leafOctets
    packed.writeBigInt64BE(BigInt(id), at)
    packed.writeBigInt64BE(BigInt(createdAt), at + 8)
    packed.write(hash, at + 16, "hex")
  })
  return packed
}

/**
 * Reads leaves from their stored form. Octets after the last whole leaf are ignored: the hash of the link shows whether
 * any were added.
 */
export const unpackLeaves = (octets: Uint8Array): ReadonlyArray<Leaf> => {
  const packed = Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength)
  return Array.from({ length: Math.floor(packed.length / leafOctets) }, (_, index) => {
    const at = index * leafOctets
    return {
      id: Number(packed.readBigInt64BE(at)),
      createdAt: Number(packed.readBigInt64BE(at + 8)),
      hash: packed.toString("hex", at + 16, at + leafOctets)
    }
  })
}

/** What the hash of a link covers. */
export interface LinkContent {
  readonly sequence: number
  /** The id of the first row, or the last id of the link before if the link has no rows. */
  readonly firstId: number
  /** The link covers the ids after the last id of the link before, up to this one. */
  readonly lastId: number
  readonly rowCount: number
  /** The latest time of a row, in epoch seconds. */
  readonly newestAt: number
  readonly chainedAt: number
  /** The hash of the link before. */
  readonly previous: string
  readonly leaves: Uint8Array
}

/** A link of the chain, without its leaves. */
export type Link = Omit<LinkContent, "leaves"> & { readonly hash: string }

/** Returns the hash of a link, in hexadecimal. */
export const hashOfLink = (link: LinkContent): string => {
  const { chainedAt, firstId, lastId, newestAt, previous, rowCount, sequence } = link
  const numbers = [sequence, firstId, lastId, rowCount, newestAt, chainedAt]
  return sha256(`acme-svc audit link 1\n${numbers.join(" ")}\n${previous}\n${sha256(link.leaves)}\n`)
}

/** The hash that the first link names as the link before it. */
export const nothingBefore = "0".repeat(64)

/** The number of the first link. */
export const firstSequence = 1

/** Returns the first link. It covers no row, and says up to which id the rows are older than the chain. */
export const firstLink = (
  { chainedAt, lastId, newestAt }: Pick<LinkContent, "chainedAt" | "lastId" | "newestAt">
): LinkContent => ({
  sequence: firstSequence,
  firstId: lastId,
  lastId,
  rowCount: 0,
  newestAt,
  chainedAt,
  previous: nothingBefore,
  leaves: Buffer.alloc(0)
})

/** Returns the link that follows a link, for rows that are not chained yet. There must be at least one row. */
export const nextLink = (
  before: Pick<Link, "hash" | "sequence">,
  leaves: ReadonlyArray<Leaf>,
  chainedAt: number
): LinkContent => ({
  sequence: before.sequence + 1,
  firstId: leaves[0]?.id ?? 0,
  lastId: leaves.at(-1)?.id ?? 0,
  rowCount: leaves.length,
  newestAt: Math.max(...leaves.map(({ createdAt }) => createdAt)),
  chainedAt,
  previous: before.hash,
  leaves: packLeaves(leaves)
})

/** Returns the text that the signature of a head covers. The time is in epoch seconds. */
export const signedText = (
  { hash, sequence }: Pick<Link, "hash" | "sequence">,
  signedAt: number
): string => `acme-svc audit head 1\n${sequence}\n${hash}\n${signedAt}\n`

/** A link that somebody keeps outside of the database, such as a signed head. */
export type Head = Pick<Link, "hash" | "sequence">

/** Returns the text by which a head is named on command lines and in the log: its number, a colon and its hash. */
export const nameOfHead = ({ hash, sequence }: Head): string => `${sequence}:${hash}`

const headForm = /^([1-9]\d{0,14}):([0-9a-f]{64})$/i

/** Reads the name of a head. Returns `undefined` for any other text. */
export const readHead = (text: string): Head | undefined => {
  const [, sequence, hash] = headForm.exec(text.trim()) ?? []
  return sequence === undefined || hash === undefined
    ? undefined
    : { sequence: Number(sequence), hash: hash.toLowerCase() }
}

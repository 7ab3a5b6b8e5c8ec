import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { fingerprint } from "../../../crypto/jose/Jws.ts"
import { readStoredChain } from "../../../crypto/x509/Chain.ts"
import type { CrlEntry } from "../../../crypto/x509/Crl.ts"
import type { RevocationList } from "../../../crypto/x509/RevocationList.ts"
import { readRevocationList } from "../../../crypto/x509/RevocationList.ts"
import { keyCompromise } from "../../../domain/RevocationReason.ts"
import { emit } from "../../../domain/words/Log.ts"
import { afterCommit, transaction } from "../../../engine/sql/Database.ts"
import { pages } from "../../../engine/sql/Pages.ts"
import { tellUnreadable } from "../../../engine/sql/Query.ts"
import { currentSeconds, rfc3339 } from "../../../engine/Time.ts"
import * as audit from "../../../store/AuditRows.ts"
import * as certificates from "../../../store/orders/CertificateRows.ts"
import * as orders from "../../../store/orders/OrderRows.ts"
import * as burntKeys from "../../../store/revocation/BurntKeys.ts"
import * as crls from "../../../store/revocation/Crls.ts"
import * as revocations from "../../../store/revocation/Revocations.ts"
import { unreadableChain } from "../../StoredCertificate.ts"

/*
 * Restores revocations that a CA's list names but the database lacks, after an older state of the database was restored
 * (docs/contribute/decisions/issued-lists.md).
 */

/** A list of this service that verifies with its CA's key, and the file from which the list was read. */
export interface Source {
  readonly issuer: string
  readonly path: string
  readonly list: RevocationList
}

/** Who restores the revocations: the service, or an operator at the command line. */
export type By = { readonly actorKind: "system" } | { readonly actorKind: "cli"; readonly actorId: string | undefined }

type Certificate = Effect.Success<ReturnType<typeof certificates.ofSerials>>[number]

/** A revocation that the database lacks, with its certificate if an order still has that certificate. */
interface Lacking extends CrlEntry {
  readonly certificate: Certificate | undefined
}

/** The revocations that a list has and the database lacks, and the numbers of entries that need not be restored. */
export interface Compared {
  readonly lacking: ReadonlyArray<Lacking>
  /** The number of entries that the database already has. */
  readonly recorded: number
  /** The number of entries of expired certificates. They were pruned here, or would be pruned. */
  readonly ended: number
}

const pageSize = 2000
const lookedUpAtOnce = 500
const writtenAtOnce = 100
const prunedAfterSeconds = 3600

const chunksOf = <A>(all: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size))

/** Returns the serials of the stored list. A list that cannot be read counts as empty. */
const storedSerials = Effect.fnUntraced(function*(issuer: string) {
  const stored = yield* crls.find(issuer)
  if (stored === undefined) return new Set<string>()
  const list = yield* Effect.option(readRevocationList(stored.der))
  return new Set(list._tag === "None" ? [] : list.value.entries.map(({ serial }) => serial))
})

/**
 * Returns whether an entry need not be restored. The rule is that of pruning: the certificate expired more than an hour
 * ago, and a list that was issued after the expiry contained the entry. If the stored list is newer than this list, the
 * entry may have been pruned because of the stored list.
 */
const mayGo = (notAfter: number, list: RevocationList, isOld: boolean, now: number): boolean =>
  notAfter < now - prunedAfterSeconds && (isOld || notAfter < list.thisUpdate)

/**
 * Compares a list with the database. Entries that the stored list has but the rows lack were pruned here. If no order
 * has the certificate of an entry, its expiry is unknown, so the entry counts as missing.
 */
export const compare = Effect.fnUntraced(function*({ issuer, list }: Omit<Source, "path">) {
  const left = new Map(list.entries.map((entry) => [entry.serial, entry]))
  const all = left.size
  yield* Stream.runForEach(
    pages({
      from: "",
      size: pageSize,
      read: (after, size) => revocations.page(issuer, after, size),
      keyOf: ({ serial }) => serial
    }),
    (page) => Effect.sync(() => page.forEach(({ serial }) => left.delete(serial)))
  )
  const recorded = all - left.size
  if (left.size === 0) return { lacking: [], recorded, ended: 0 } satisfies Compared
  const now = yield* currentSeconds
  const isOld = list.number <= ((yield* crls.findHead(issuer))?.crlNumber ?? 0)
  for (const serial of yield* storedSerials(issuer)) left.delete(serial)
  const lacking: Array<Lacking> = []
  for (const chunk of chunksOf([...left.values()], lookedUpAtOnce)) {
    const found = new Map<string, Certificate>()
    for (const one of yield* certificates.ofSerials(chunk.map(({ serial }) => serial))) {
      const stored = readStoredChain(one.certificate)
      if (stored === undefined) yield* tellUnreadable(unreadableChain("certificates_of_serials", one.orderId))
      if (stored?.issuerId === issuer) found.set(one.serial, one)
    }
    for (const entry of chunk) {
      const certificate = found.get(entry.serial)
      const end = certificate?.notAfter ?? -1
      if (end < 0 || !mayGo(end, list, isOld, now)) lacking.push({ ...entry, certificate })
    }
    yield* Effect.yieldNow
  }
  return { lacking, recorded, ended: all - recorded - lacking.length } satisfies Compared
})

/** Stores one revocation with the values in the list. Returns whether it is new. */
const restoreOne = Effect.fnUntraced(function*(
  { issuer, list, path }: Source,
  { certificate, reason, revokedAt, serial }: Lacking,
  by: By
) {
  const end = certificate?.notAfter ?? -1
  const notAfter = end < 0 ? undefined : end
  const row = yield* revocations.insert({ issuer, serial, now: revokedAt, reason, notAfter })
  if (row === undefined) return false
  if (certificate !== undefined) {
    const { accountId, certPubkey: pubkey, orderId } = certificate
    yield* revocations.stampOrder({ id: orderId, now: revokedAt, reason })
    if (reason === keyCompromise && pubkey !== undefined) {
      // It is unknown who revoked the certificate, but the key was burnt at least for the account that has the
      // certificate.
      yield* burntKeys.insert({ pubkey, accountId, now: yield* currentSeconds })
      yield* afterCommit(emit("key_burnt", { key_fp: fingerprint(pubkey), order_id: orderId, scope: "account" }))
    }
  }
  yield* audit.insert({
    event: "revocation_restored",
    ...by,
    profile: certificate?.profile,
    accountId: certificate?.accountId,
    orderId: certificate?.orderId,
    certSerial: serial,
    identifiers: certificate?.identifiers.map(({ value }) => value),
    ...(reason === undefined ? {} : { reason: String(reason) }),
    detail: { issuer, crl_number: list.number, path, revoked_at: rfc3339(revokedAt) }
  })
  return true
})

/**
 * Records the revocations that a list names but the database lacks, with the dates and reasons in the list. Logs a
 * warning about the new revocations, and returns how many there are. Other work can run between two batches. After an
 * interruption, the revocations that were recorded so far stay recorded.
 */
export const restore = Effect.fnUntraced(function*(source: Source, { lacking }: Compared, by: By) {
  const { issuer, list, path } = source
  let restored = 0
  const together = (batch: ReadonlyArray<Lacking>) =>
    transaction(Effect.gen(function*() {
      let count = 0
      for (const one of batch) {
        if (one.certificate !== undefined) yield* orders.lock(one.certificate.orderId)
        if (yield* restoreOne(source, one, by)) count += 1
      }
      return count
    }))
  // As everywhere, only one order is locked at a time.
  const batches = [
    ...lacking.filter(({ certificate }) => certificate !== undefined).map((one) => [one]),
    ...chunksOf(lacking.filter(({ certificate }) => certificate === undefined), writtenAtOnce)
  ]
  for (const batch of batches) {
    restored += yield* together(batch)
    yield* Effect.yieldNow
  }
  if (restored > 0) {
    const facts = { issuer, path, crl_number: String(list.number) }
    yield* emit("local_ca_revocations_restored", { ...facts, entries: list.entries.length, rows_imported: restored })
  }
  return restored
})

const halfValidity = 7 * 86_400 / 2

/**
 * Ensures that the next list has a higher number than a published list. The stored list becomes due, but stays valid.
 */
export const raiseAbove = Effect.fnUntraced(function*(issuer: string, number: number) {
  const head = yield* crls.findHead(issuer)
  if (head === undefined || number <= head.crlNumber) return false
  const nextUpdate = Math.min(head.nextUpdate, (yield* currentSeconds) + halfValidity - 1)
  return (yield* crls.raise(issuer, { before: head.crlNumber, number, nextUpdate })) !== undefined
})

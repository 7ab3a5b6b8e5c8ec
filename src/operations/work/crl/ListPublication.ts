import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { Entropy } from "../../../crypto/Entropy.ts"
import type { CrlEntry } from "../../../crypto/x509/Crl.ts"
import { encodeEntries, listedSerials } from "../../../crypto/x509/Crl.ts"
import { IssuerNotServed, ListNotSigned, ListsOvertaken } from "../../../domain/JobFailure.ts"
import type { PayloadOf } from "../../../domain/words/JobKind.ts"
import { emit } from "../../../domain/words/Log.ts"
import { clocks } from "../../../engine/queue/Clocks.ts"
import type { Job } from "../../../engine/queue/Job.ts"
import { Done, Reschedule, Retry } from "../../../engine/queue/Outcome.ts"
import type { Queue } from "../../../engine/queue/Queue.ts"
import type { Database, StorageFailed } from "../../../engine/sql/Database.ts"
import { aside, transaction } from "../../../engine/sql/Database.ts"
import { inBatches, pages } from "../../../engine/sql/Pages.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import type { Notifier } from "../../../services/notify/Notifier.ts"
import { exportedNumber } from "../../../services/signing/ExportedCrl.ts"
import { ledgerPathOf, readLedger } from "../../../services/signing/Ledger.ts"
import type { CrlIssuer } from "../../../services/signing/Signer.ts"
import { Signers } from "../../../services/signing/Signer.ts"
import * as crls from "../../../store/revocation/Crls.ts"
import * as revocations from "../../../store/revocation/Revocations.ts"
import { revokePage } from "./CompromisedCa.ts"
import { exportList } from "./CrlExport.ts"
import { reconcile } from "./IssuedLists.ts"
import { listDate } from "./ListDate.ts"
import { enqueueList } from "./ListJob.ts"
import { raiseAbove } from "./RestoredRevocations.ts"

/*
 * The revocation lists of the local CAs (docs/contribute/decisions/revocation-lists.md). Only workers use this module.
 */

class CrlNotSigned extends Data.TaggedError("CrlNotSigned") {
  override get message(): string {
    return "the CA key did not sign"
  }
}

const daySeconds = 86_400
const validitySeconds = 7 * daySeconds
const pageSize = 2000

/** Returns every revocation of an issuer. */
const revocationsOf = (issuer: string) =>
  pages({
    from: "",
    size: pageSize,
    read: (after, size) => revocations.page(issuer, after, size),
    keyOf: ({ serial }) => serial
  })

const republished = (crl: CrlIssuer, number: number, entries: number) =>
  Effect.andThen(
    emit("local_ca_crl_republished", { issuer: crl.id, crl_number: String(number), entries }),
    exportList(crl)
  )

/** Signs a list. `now` is the time at which its rows were read, or an earlier time. */
const signed = Effect.fnUntraced(
  function*(crl: CrlIssuer, number: number, now: number, entries: ReadonlyArray<Uint8Array>) {
    const nextUpdate = now + validitySeconds
    const der = yield* crl.sign({ number, entries, thisUpdate: listDate(now), nextUpdate })
    return { issuer: crl.id, number, thisUpdate: now, nextUpdate, der }
  }
)

/**
 * Signs and stores the next list. The number is read before the rows, so a list never lacks rows that belong to its
 * number.
 */
const publishNext = Effect.fnUntraced(function*(crl: CrlIssuer, before: number, above: number) {
  const now = yield* currentSeconds
  const encoded: Array<Uint8Array> = []
  let entries = 0
  yield* Stream.runForEach(revocationsOf(crl.id), (page) =>
    Effect.sync(() => {
      entries += page.length
      encoded.push(encodeEntries(page, listDate(now)))
    }))
  // A database that has lost commits may have an older list than the published one.
  const number = Math.max(before, (yield* exportedNumber(crl)) ?? 0, above) + 1
  const list = yield* signed(crl, number, now, encoded)
  const isNext = (yield* crls.findHead(crl.id))?.crlNumber === before
  // The list is written to the disk before it is served, because a restored database is compared with the written list.
  if (isNext) yield* crl.issued.write(list.der)
  const stored = isNext ? yield* crls.replace(list, before) : undefined
  if (stored === undefined) {
    yield* emit("local_ca_crl_not_stored", { issuer: crl.id, crl_number: String(number) })
    return false
  }
  yield* republished(crl, number, entries)
  return true
})

/**
 * Publishes the first list of an issuer. Its number is above the given number, and it contains the entries of an old
 * ledger, if there is one.
 */
const publishFirst = Effect.fnUntraced(function*(crl: CrlIssuer, above: number) {
  const ledger = yield* readLedger(ledgerPathOf(crl.path))
  const rows = new Map<string, CrlEntry>()
  const add = (entry: CrlEntry) => {
    const known = rows.get(entry.serial)
    if (known === undefined || entry.revokedAt < known.revokedAt) rows.set(entry.serial, entry)
  }
  for (const entry of ledger?.entries ?? []) add(entry)
  const imported = rows.size
  const exported = yield* exportedNumber(crl)
  yield* Stream.runForEach(revocationsOf(crl.id), (page) => Effect.sync(() => page.forEach(add)))
  const entries = [...rows.values()].sort((one, other) => one.serial < other.serial ? -1 : 1)
  const number = Math.max(imported, ledger?.number ?? 0, exported ?? 0, above) + 1
  const now = yield* currentSeconds
  const list = yield* signed(crl, number, now, [encodeEntries(entries, listDate(now))])
  yield* crl.issued.write(list.der)
  const isFirst = yield* transaction(Effect.gen(function*() {
    if ((yield* crls.insert(list)) === undefined) return false
    yield* revocations.insertAll(
      crl.id,
      entries.map(({ reason, revokedAt, serial }) => [serial, revokedAt, reason ?? -1] as const)
    )
    return true
  }))
  const crl_number = String(number)
  if (!isFirst) {
    yield* emit("local_ca_crl_not_stored", { issuer: crl.id, crl_number })
    return false
  }
  if (ledger !== undefined) {
    yield* emit("local_ca_ledger_imported", {
      issuer: crl.id,
      crl_number,
      entries: entries.length,
      rows_imported: imported
    })
  }
  yield* republished(crl, number, entries.length)
  return true
})

type Head = Effect.Success<ReturnType<typeof crls.findHead>>

/**
 * Signs and stores the list that follows `head`, or the first list with a number above `above`. Returns `false` if
 * another worker has stored a list first.
 */
const publish = (crl: CrlIssuer, head: Head, above: number) =>
  Effect.mapError(
    head === undefined ? publishFirst(crl, above) : publishNext(crl, head.crlNumber, above),
    (error) => error._tag === "NotSigned" ? new CrlNotSigned() : error
  )

/**
 * Stores the revocations that the record of the last list has but the database lacks. Then signs and stores the next
 * list.
 */
const publishAfterRecord = Effect.fnUntraced(function*(crl: CrlIssuer, above: number) {
  const { number } = yield* reconcile(crl)
  return yield* publish(crl, yield* crls.findHead(crl.id), Math.max(number, above))
})

const enqueue = (crl: CrlIssuer) => Effect.asVoid(enqueueList(crl.id))

const passes = 5
/** The number of seconds between two attempts to read an old ledger that cannot be read. */
const ledgerSeconds = 10

/**
 * Revokes what a compromised CA has signed, and signs until a list is stored. If a revocation joined this job while the
 * job was running, the list may lack it. Then the settlement enqueues a successor job.
 */
export const regenerate = Effect.fnUntraced(function*(payload: PayloadOf<"local_ca_crl_regenerate">) {
  const { above = 0, issuer } = payload
  const { crlIssuers } = yield* Signers
  const crl = crlIssuers.find(({ id }) => id === issuer)
  if (crl === undefined) {
    return Retry(new IssuerNotServed({ issuer }))
  }
  const isMore = yield* Effect.catchTag(
    revokePage(issuer),
    "ListsStopped",
    ({ trouble }) => Effect.succeed(new ListNotSigned({ detail: trouble }))
  )
  if (typeof isMore !== "boolean") return Retry(isMore)
  for (let pass = 0; pass < passes; pass++) {
    const ended = yield* Effect.result(publishAfterRecord(crl, above))
    if (Result.isFailure(ended)) {
      if (ended.failure._tag === "StorageFailed") return yield* ended.failure
      const error = ended.failure.message
      yield* emit("local_ca_crl_initialization_failed", { issuer, error })
      const failure = new ListNotSigned({ detail: error })
      // Until an operator repairs the ledger, nothing is revoked. After the repair, revocation should continue soon.
      return ended.failure._tag === "LedgerUnusable"
        ? Reschedule((yield* currentSeconds) + ledgerSeconds, { failure })
        : Retry(failure)
    }
    if (!ended.success) continue
    return isMore ? Reschedule(yield* currentSeconds) : Done({ ifJoined: enqueue(crl) })
  }
  return Retry(new ListsOvertaken())
})

/** The number of seconds after which a list that was not signed in any attempt is tried again. */
export const unsignedSeconds = 300

/**
 * Makes one attempt of the job to sign the next list. If the key did not sign, or the list could not be recorded, the
 * job does not end with its last attempt, because the revocations of that time are on no list.
 */
export const signNext = (payload: PayloadOf<"local_ca_crl_regenerate">, job: Pick<Job, "attempts" | "maxAttempts">) =>
  Effect.flatMap(
    regenerate(payload),
    (outcome) =>
      outcome._tag === "Retry" && outcome.failure._tag === "ListNotSigned" && job.attempts >= job.maxAttempts
        ? Effect.map(currentSeconds, (now) => Reschedule(now + unsignedSeconds, { failure: outcome.failure }))
        : Effect.succeed(outcome)
  )

/**
 * Returns whether a new list is due. A CA that has ended signs no more lists. Otherwise a list is due if no list is
 * stored, or if the stored list is past half of its validity, lacks a recorded revocation, has a `thisUpdate` in the
 * future, or cannot be read as a list.
 */
const isDue = Effect.fnUntraced(function*(crl: CrlIssuer) {
  const now = yield* currentSeconds
  if (crl.until < now) return false
  const stored = yield* crls.find(crl.id)
  if (stored === undefined) return true
  if (stored.nextUpdate - now < validitySeconds / 2 || stored.thisUpdate > now) return true
  const listed = Result.getOrUndefined(listedSerials(stored.der))
  if (listed === undefined) return true
  const isLacking = (page: ReadonlyArray<CrlEntry>) => page.some(({ serial }) => !listed.has(serial))
  return Option.isSome(yield* Stream.runHead(Stream.filter(revocationsOf(crl.id), isLacking)))
})

const initializeList = Effect.fnUntraced(function*(crl: CrlIssuer) {
  const exported = yield* exportedNumber(crl)
  const reconciled = yield* Effect.result(reconcile(crl))
  const head = yield* crls.findHead(crl.id)
  if (Result.isFailure(reconciled)) {
    if (reconciled.failure._tag === "StorageFailed") return yield* reconciled.failure
    yield* emit("local_ca_crl_initialization_failed", { issuer: crl.id, error: reconciled.failure.message })
    return yield* enqueue(crl)
  }
  const { number, restored } = reconciled.success
  if (head === undefined) {
    // The head is not read again: if another worker was faster, this worker must not sign a second list.
    const first = yield* Effect.result(publish(crl, head, number))
    if (Result.isSuccess(first)) return
    if (first.failure._tag === "StorageFailed") return yield* first.failure
    yield* emit("local_ca_crl_initialization_failed", { issuer: crl.id, error: first.failure.message })
    return yield* enqueue(crl)
  }
  if (restored > 0) {
    // The signing is not left to a job, because nothing may be served before the list contains the restored revocations
    // again.
    const signed = yield* regenerate({ issuer: crl.id })
    return signed._tag === "Done" ? undefined : yield* enqueue(crl)
  }
  // The database may be older than the published list. Clients have seen the number of that list, so the next number
  // must be higher.
  if (yield* raiseAbove(crl.id, Math.max(exported ?? 0, number))) return yield* enqueue(crl)
  if (yield* isDue(crl)) return yield* enqueue(crl)
  yield* exportList(crl) // the worker that stored the list may have died before it wrote the file
})

/**
 * Runs before a worker claims its first job. A CA that is new to the database gets its list at once, so that a correct
 * empty list exists from the start. If a list is due, its signing is queued. A failure does not prevent the worker from
 * starting.
 */
export const initialize: Effect.Effect<void, StorageFailed, Database | Notifier | Queue | Signers | Entropy> = Effect
  .gen(
    function*() {
      const { crlIssuers } = yield* Signers
      for (const crl of crlIssuers) {
        // If one list cannot be read, the worker continues with the other lists.
        yield* Effect.catchIf(
          initializeList(crl),
          ({ isUnreadable }) => isUnreadable === true,
          ({ message }) => emit("local_ca_crl_initialization_failed", { issuer: crl.id, error: message })
        )
      }
      const served = new Set(crlIssuers.map(({ id }) => id))
      for (const { issuer } of yield* revocations.issuers(yield* currentSeconds)) {
        if (!served.has(issuer)) yield* emit("local_ca_orphaned_crl", { issuer })
      }
    }
  )

const pruneAfterSeconds = 3600
const skewSeconds = 3600
const pruneBatch = 1000

/**
 * Deletes the revocations of certificates that expired more than an hour ago, once a list that was signed after the
 * expiry contains them. Such a list is needed because a certificate may be revoked after it has expired. Rows without a
 * known expiry stay.
 */
const prune = Effect.fnUntraced(function*(crl: CrlIssuer) {
  const head = yield* crls.findHead(crl.id)
  if (head === undefined) return
  const { earlier: now } = yield* clocks
  const before = Math.min(now - pruneAfterSeconds, head.thisUpdate)
  const listed = head.thisUpdate - skewSeconds
  const rows_removed = yield* inBatches(pruneBatch, (limit) => revocations.prune(crl.id, { before, listed, limit }))
  if (rows_removed === 0) return
  const entries = yield* aside(revocations.count(crl.id))
  yield* emit("local_ca_crl_pruned", { issuer: crl.id, crl_number: String(head.crlNumber), entries, rows_removed })
})

/** Runs the daily sweep: queues the signing of due lists, then deletes the entries of expired certificates. */
export const sweep: Effect.Effect<void, StorageFailed, Database | Queue | Signers> = Effect.gen(function*() {
  const { crlIssuers } = yield* Signers
  for (const crl of crlIssuers) {
    const swept = Effect.andThen(
      Effect.flatMap(isDue(crl), (due) => due ? enqueue(crl) : Effect.void),
      Effect.tapError(
        prune(crl),
        ({ message }) => emit("local_ca_crl_prune_failed", { issuer: crl.id, error: message })
      )
    )
    yield* Effect.catchIf(swept, ({ isUnreadable }) => isUnreadable === true, () => Effect.void) // the failure is recorded, and the next CA is swept
  }
})

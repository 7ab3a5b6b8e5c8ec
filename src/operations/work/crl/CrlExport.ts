import type * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import { encodePem } from "../../../crypto/asn1/Pem.ts"
import { Entropy } from "../../../crypto/Entropy.ts"
import { listHead } from "../../../crypto/x509/Crl.ts"
import { emit } from "../../../domain/words/Log.ts"
import { readOctets, replaceFile, stampOf } from "../../../engine/host/KeyFile.ts"
import { withLockFile } from "../../../engine/host/LockFile.ts"
import type { Queue } from "../../../engine/queue/Queue.ts"
import type { Database, StorageFailed } from "../../../engine/sql/Database.ts"
import { currentMillis } from "../../../engine/Time.ts"
import { exportedNumber } from "../../../services/signing/ExportedCrl.ts"
import { issuedPathOf } from "../../../services/signing/IssuedCrl.ts"
import type { CrlIssuer } from "../../../services/signing/Signer.ts"
import { Signers } from "../../../services/signing/Signer.ts"
import * as crls from "../../../store/revocation/Crls.ts"
import { keepRecord } from "./IssuedLists.ts"
import { enqueueList } from "./ListJob.ts"

/*
 * Writes a CA's list to its files. The files are copies of the stored list. A file that differs from the stored list is
 * written again. The record of the issued list is written first (docs/contribute/decisions/issued-lists.md), then the
 * PEM file, then the DER file if it is configured.
 */

type Stored = NonNullable<Effect.Success<ReturnType<typeof crls.find>>>

const passes = 5
const roundSeconds = 30
const toldEveryMillis = 3_600_000

/** Returns the files of a CA with the contents that they must have. */
const copiesOf = ({ derPath, path }: CrlIssuer, { der }: Stored) => [
  { path, content: Buffer.from(encodePem("X509 CRL", der)) },
  ...derPath === undefined ? [] : [{ path: derPath, content: der }]
]

/**
 * The file has a list that the database does not know, because the database has lost commits. If an older list
 * overwrote this file, the list that clients have seen would be lost, and with it the only record of its revocations.
 */
class NewerExported extends Data.TaggedError("NewerExported")<{
  readonly path: string
  readonly exported: number
  readonly stored: number
}> {
  override get message(): string {
    const { exported, path, stored } = this
    return `${path} has list ${exported} and the database only list ${stored}, so it has lost commits; ` +
      `what that list revokes is revoked here too if ${issuedPathOf(path)} had it, and otherwise by crl import`
  }
}

const write = Effect.fnUntraced(function*(crl: CrlIssuer) {
  const entropy = yield* Entropy
  for (let pass = 0; pass < passes; pass++) {
    if ((yield* keepRecord(crl)) > 0) {
      // The stored list lacks revocations that the file may have. The next list is written in its place.
      yield* enqueueList(crl.id)
      return
    }
    const stored = yield* crls.find(crl.id)
    if (stored === undefined) return
    const exported = yield* exportedNumber(crl)
    // If the number was raised, no list with this number exists yet, so the number is read from the list itself.
    const { crlNumber, thisUpdate } = stored
    const number = Result.match(listHead(stored.der), { onFailure: () => crlNumber, onSuccess: (head) => head.number })
    if (exported !== undefined && exported > number) {
      // This makes every host sign the next list with a higher number.
      yield* crls.raise(crl.id, { before: crlNumber, number: exported, nextUpdate: thisUpdate })
      return yield* new NewerExported({ path: crl.path, exported, stored: number })
    }
    for (const copy of copiesOf(crl, stored)) {
      yield* replaceFile({ ...copy, mode: 0o644, suffix: yield* entropy.token })
    }
    // If another list was stored in the meantime, and perhaps even written, this list must not replace it. So the
    // stored list is checked after each write: the process that writes last also checks last.
    const head = yield* crls.findHead(crl.id)
    if (head?.crlNumber === stored.crlNumber && head.thisUpdate === stored.thisUpdate) return
  }
})

const exported = (crl: CrlIssuer) =>
  Effect.mapError(
    withLockFile(`${crl.path}.lock`, write(crl)),
    ({ message }) => `${message}; the list is still served, and writing the file is tried again every ${roundSeconds} s`
  )

/** Writes the stored list to its files. A failure is logged. Then {@link keepExported} tries again. */
export const exportList = (crl: CrlIssuer): Effect.Effect<void, never, Database | Entropy | Queue> =>
  Effect.catch(exported(crl), (error) => emit("local_ca_crl_export_failed", { issuer: crl.id, error }))

/**
 * For each CA, by the path of its PEM file: the state in which its files were last found correct, and the last fault
 * that was logged.
 */
interface Known {
  readonly inOrder: Map<string, string>
  readonly told: Map<string, { readonly error: string; readonly at: number }>
  /** The CAs whose lists have stopped, because the record of the last list cannot be used. */
  readonly stopped: Set<string>
}

/** Returns a text that changes whenever the stored list or one of its files changes. */
const stateOf = Effect.fnUntraced(
  function*({ derPath, issued, path }: CrlIssuer, head: Pick<Stored, "crlNumber" | "thisUpdate">) {
    const stamps = yield* Effect.forEach([issued.path, path, ...derPath === undefined ? [] : [derPath]], stampOf)
    return `${head.crlNumber} ${head.thisUpdate} ${stamps.join(" ")}`
  }
)

/**
 * Returns whether the files equal the stored list. The files are read only if a file or the list has changed since the
 * last check.
 */
const isInOrder = Effect.fnUntraced(function*(crl: CrlIssuer, { inOrder }: Known) {
  const head = yield* crls.findHead(crl.id)
  if (head === undefined) return true
  const met = yield* stateOf(crl, head)
  if (inOrder.get(crl.path) === met) return true
  const stored = yield* crls.find(crl.id)
  if (stored === undefined) return true
  const record = { path: crl.issued.path, content: Buffer.from(stored.der) }
  for (const { content, path } of [record, ...copiesOf(crl, stored)]) {
    const file = yield* Effect.option(readOctets(path, content.length))
    if (file._tag === "None" || !file.value.octets.equals(content)) return false
  }
  inOrder.set(crl.path, met)
  return true
})

/** Updates the files that differ from the stored lists. */
const round = Effect.fnUntraced(function*(known: Known) {
  const { crlIssuers } = yield* Signers
  for (const crl of crlIssuers) {
    // The worker's reports about its profiles state this trouble (operations/ProfileHealth.ts).
    if ((yield* crl.issued.trouble) !== undefined) {
      known.stopped.add(crl.path)
      continue
    }
    if (known.stopped.delete(crl.path)) yield* enqueueList(crl.id)
    // If the list of one CA cannot be read, the lists of the others are still written. The write below reports what is
    // wrong.
    if (yield* Effect.orElseSucceed(isInOrder(crl, known), () => false)) continue
    const error = yield* Effect.match(exported(crl), { onSuccess: () => undefined, onFailure: (error) => error })
    if (error === undefined) {
      known.told.delete(crl.path)
      const head = yield* crls.findHead(crl.id)
      // The files are also correct if the record has a newer list than the database.
      if (head !== undefined) known.inOrder.set(crl.path, yield* stateOf(crl, head))
      yield* emit("local_ca_crl_exported", { issuer: crl.id, path: crl.path })
      continue
    }
    const now = yield* currentMillis
    const last = known.told.get(crl.path)
    if (last?.error === error && Math.abs(now - last.at) < toldEveryMillis) continue
    known.told.set(crl.path, { error, at: now })
    yield* emit("local_ca_crl_export_failed", { issuer: crl.id, error })
  }
})

/**
 * Keeps the exported files equal to the stored lists forever. A file is updated at most half a minute after it becomes
 * writable. Updates are needed because a worker may have died before it wrote a file, the disk may have been full, or
 * another host may have signed. `signers` returns the current signers.
 */
export const keepExported = (
  signers: Effect.Effect<Context.Context<Signers> | undefined>
): Effect.Effect<never, never, Database | Entropy | Queue> =>
  Effect.suspend(() => {
    const known: Known = { inOrder: new Map(), told: new Map(), stopped: new Set() }
    const once: Effect.Effect<void, StorageFailed, Database | Entropy | Queue> = Effect.flatMap(
      signers,
      (now) => now === undefined ? Effect.void : Effect.provide(round(known), now)
    )
    // A failure of the database is ignored here: the code that queries the database logs it, and the next round tries
    // again.
    return Effect.andThen(
      Effect.repeat(Effect.delay(Effect.ignore(once), `${roundSeconds} seconds`), Schedule.forever),
      Effect.never
    )
  })

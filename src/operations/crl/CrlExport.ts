import type { Context } from "effect"
import { Clock, Effect, Schedule } from "effect"
import { readTextFile, replaceFile, stampOf } from "../../kernel/host/KeyFile.ts"
import { withLockFile } from "../../kernel/host/LockFile.ts"
import type { Database, StorageFailed } from "../../kernel/sql/Database.ts"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import { encodePem } from "../../pki/asn1/Pem.ts"
import { Entropy } from "../../pki/Entropy.ts"
import type { CrlIssuer } from "../../services/signing/Signer.ts"
import { Signers } from "../../services/signing/Signer.ts"
import * as crls from "../../store/revocation/Crls.ts"

/* The file that shows a CA's list to others: a copy of what is stored, made again whenever it is not that. */

type Stored = NonNullable<Effect.Effect.Success<ReturnType<typeof crls.find>>>

const passes = 5
const roundSeconds = 30
const toldEveryMillis = 3_600_000

const pemOf = ({ der }: Stored): string => encodePem("X509 CRL", der)

const write = Effect.fnUntraced(function*(crl: CrlIssuer) {
  const entropy = yield* Entropy
  for (let pass = 0; pass < passes; pass++) {
    const stored = yield* crls.find(crl.id)
    if (stored === undefined) return
    yield* replaceFile({ path: crl.path, content: pemOf(stored), mode: 0o644, suffix: yield* entropy.token })
    // Whoever wrote last looks last: if another list was stored meanwhile, and even written, this one is not left in its place.
    const head = yield* crls.findHead(crl.id)
    if (head?.crlNumber === stored.crlNumber && head.thisUpdate === stored.thisUpdate) return
  }
})

const exported = (crl: CrlIssuer) =>
  Effect.mapError(
    withLockFile(`${crl.path}.lock`, write(crl)),
    ({ message }) => `${message}; the list is served all the same, and the file is tried again every ${roundSeconds} s`
  )

/** Writes the stored list to its file; what the file lacks afterwards is logged, and left to {@link keepExported}. */
export const exportList = (crl: CrlIssuer): Effect.Effect<void, never, Database | Entropy> =>
  Effect.catchAll(exported(crl), (error) => emit("local_ca_crl_export_failed", { issuer: crl.id, error }))

/** What is known of the files: as what each was met, and what was told of it. */
interface Known {
  readonly inOrder: Map<string, string>
  readonly told: Map<string, { readonly error: string; readonly at: number }>
}

/** Whether the file is the stored list. It is read only when either of them is not what it was the last time. */
const isInOrder = Effect.fnUntraced(function*(crl: CrlIssuer, { inOrder }: Known) {
  const head = yield* crls.findHead(crl.id)
  if (head === undefined) return true
  const met = `${head.crlNumber} ${head.thisUpdate} ${yield* stampOf(crl.path)}`
  if (inOrder.get(crl.path) === met) return true
  const stored = yield* crls.find(crl.id)
  const content = stored && pemOf(stored)
  const file = yield* Effect.option(readTextFile(crl.path, content?.length))
  if (file._tag === "None" || file.value.text !== content) return false
  inOrder.set(crl.path, met)
  return true
})

/** Brings the files up to date that are not. */
const round = Effect.fnUntraced(function*(known: Known) {
  const { crlIssuers } = yield* Signers
  for (const crl of crlIssuers) {
    if (yield* isInOrder(crl, known)) continue
    const error = yield* Effect.match(exported(crl), { onSuccess: () => undefined, onFailure: (error) => error })
    if (error === undefined) {
      known.told.delete(crl.path)
      yield* emit("local_ca_crl_exported", { issuer: crl.id, path: crl.path })
      continue
    }
    const now = yield* Clock.currentTimeMillis
    const last = known.told.get(crl.path)
    if (last?.error === error && Math.abs(now - last.at) < toldEveryMillis) continue
    known.told.set(crl.path, { error, at: now })
    yield* emit("local_ca_crl_export_failed", { issuer: crl.id, error })
  }
})

/**
 * Sees to it for ever that the exported files are the stored lists, within half a minute of their being writable: a worker may
 * have died before it wrote one, the disk may have been full, or another host may have signed. `signers` are those of now.
 */
export const keepExported = (
  signers: Effect.Effect<Context.Context<Signers> | undefined>
): Effect.Effect<never, never, Database | Entropy> =>
  Effect.suspend(() => {
    const known: Known = { inOrder: new Map(), told: new Map() }
    const once: Effect.Effect<void, StorageFailed, Database | Entropy> = Effect.flatMap(
      signers,
      (now) => now === undefined ? Effect.void : Effect.provide(round(known), now)
    )
    // A database that is away is told of where it is asked; the next round asks again.
    return Effect.zipRight(
      Effect.repeat(Effect.delay(Effect.ignore(once), `${roundSeconds} seconds`), Schedule.forever),
      Effect.never
    )
  })

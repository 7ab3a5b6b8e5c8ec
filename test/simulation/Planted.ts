import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/* Planted bugs that the simulation must find. Each removes one guard on which the service relies. */

/** A guard in the source, and the source without the guard. */
export interface PlantedBug {
  readonly name: string
  readonly file: string
  readonly guard: string
  readonly without: string
}

/** The planted bugs. */
export const plantedBugs: ReadonlyArray<PlantedBug> = [
  {
    name: "a nonce is looked at and not taken",
    file: "src/store/NonceRows.ts",
    guard:
      "`DELETE FROM nonces WHERE value ${oneOf(\":values\", \"text\")}\n     RETURNING value, created_at AS \"second\", created_millisecond AS \"millisecond\"`\n",
    without:
      "`SELECT value, created_at AS \"second\", created_millisecond AS \"millisecond\" FROM nonces\n     WHERE value ${oneOf(\":values\", \"text\")}`\n"
  },
  {
    name: "an order is issued whatever became of its authorizations since the signing began",
    file: "src/store/orders/OrderRows.ts",
    guard: "WHERE id = :id AND ${leaving(orderMoves.issue, checked(\"status\"))} AND ${everyNameProved}\n",
    without: "WHERE id = :id AND ${leaving(orderMoves.issue, checked(\"status\"))}\n"
  },
  {
    name: "an order becomes ready however few authorizations it has left",
    file: "src/store/orders/OrderRows.ts",
    guard: "const everyNameProved = `${nameCountOf(\"orders\")} = NULLIF(${validOf(\"orders\")}, 0)`",
    without: `const everyNameProved =
  "NOT EXISTS (SELECT 1 FROM authorizations a WHERE a.order_id = orders.id AND a.status <> 'valid')"`
  },
  {
    name: "a certificate that came too late is dropped",
    file: "src/operations/work/Issuance.ts",
    guard: "    (isStored) => isStored ? Effect.void : inVain\n",
    without: "    () => Effect.void\n"
  },
  {
    name: "an order is claimed in whatever state it is",
    file: "src/store/orders/OrderRows.ts",
    guard: "AND ${leaving(orderMoves.claim, f.checked(\"status\"))} AND ${everyNameProved}",
    without: "AND ${everyNameProved}"
  },
  {
    name: "the signing job is written after the order was claimed, not with it",
    file: "src/operations/acme/Finalize.ts",
    guard: "import { enqueueJob } from \"../../domain/words/JobKind.ts\"\n",
    without: `import { enqueueJob as enqueue } from "../../domain/words/JobKind.ts"
const enqueueJob = (job) => afterCommit(Effect.ignore(enqueue(job)))
`
  },
  {
    name: "leases of dead workers stay",
    file: "src/engine/queue/Leases.ts",
    guard: "if (isDead(row, since, life, now)) dead.push(row)",
    without: "if (isDead(row, since, life, now) && life < 0) dead.push(row)"
  },
  {
    name: "a job is given up without its abandon step",
    file: "src/engine/queue/Settlement.ts",
    guard: "if (yield* settle(job, abandon(failure), row)) {",
    without: "if (yield* settle(job, Effect.asVoid(Effect.succeed(abandon)), row)) {"
  },
  {
    name: "a revocation asks for no new list",
    file: "src/operations/work/Revocation.ts",
    guard: "    return yield* enqueueList(issuer)\n",
    without: "    return issuer\n"
  },
  {
    name: "a revocation that came while a list was signed is not looked for",
    file: "src/operations/work/crl/ListPublication.ts",
    guard: "Done({ ifJoined: enqueue(crl) })",
    without: "Done()"
  },
  {
    name: "a certificate is revoked again",
    file: "src/store/revocation/Revocations.ts",
    guard: "AND ${checked(\"revoked_at\")} IS NULL",
    without: "AND 1 = 1"
  },
  {
    name: "an answer is given whether or not its transaction was committed",
    file: "src/engine/sql/GroupCommit.ts",
    guard: "        for (const member of group) outcomes.set(member, Exit.failCause(cause))\n",
    without: ""
  },
  {
    name: "a challenge is met by any answer",
    file: "src/services/validation/Http01.ts",
    guard: "trim(body).equals(Buffer.from(keyAuthorization))",
    without: "trim(body).length > 0"
  },
  {
    name: "a deactivated account goes on being served",
    file: "src/operations/acme/Authenticate.ts",
    guard: "  yield* refuseUnlessValid(account)\n",
    without: ""
  },
  {
    name: "commits are not synced, whatever is asked for",
    file: "src/engine/sql/SqliteConnection.ts",
    guard: "`synchronous = ${atCommit}`",
    without: "\"synchronous = normal\""
  },
  {
    name: "a commit is answered before its sync",
    file: "src/engine/sql/Synced.ts",
    guard: "() => commits.upTo(needed.commit)",
    without: "() => Effect.void"
  },
  {
    name: "a held answer is lost by a reload",
    file: "src/engine/queue/Waits.ts",
    guard: "Effect.raceFirst(Effect.sleep(millis), ends.after(since, subject))",
    // The semaphore belongs to one configuration, and the ends belong to the process.
    without: `Effect.suspend(() => {
                ends.holder = holds
                return Effect.andThen(
                  Effect.raceFirst(Effect.sleep(millis), ends.after(since, subject)),
                  Effect.suspend(() => ends.holder === holds ? Effect.void : Effect.never)
                )
              })`
  },
  {
    name: "a configuration is closed before its requests are answered",
    file: "src/app/Uses.ts",
    guard: "return uses === 0 ? Effect.void : Deferred.await(over)",
    without: "return Effect.void"
  },
  {
    name: "jobs that a clock ahead has dated stay where they are",
    file: "src/engine/queue/Runner.ts",
    guard: "Effect.suspend(() => DueTimes.correct(reach, inForce.tuning.retry_max_seconds))",
    without: "Effect.succeed(reach === undefined ? 1 : 0)"
  },
  {
    name: "all slots go to whoever came first",
    file: "src/engine/queue/Slots.ts",
    guard: "firstCome: Math.ceil(slots / 4),",
    without: "firstCome: slots,"
  },
  {
    name: "a notification is queued after the change, not with it",
    file: "src/services/notify/Notifier.ts",
    guard: "for (const route of wanted) yield* insert(occurrence, route, fields)",
    without: "yield* afterCommit(Effect.ignore(Effect.forEach(wanted, (route) => insert(occurrence, route, fields))))"
  },
  {
    name: "an account is told of in a transaction of its own",
    file: "src/services/notify/Notifier.ts",
    guard: "transaction(Effect.tap(change, (changed) => changed === undefined ? Effect.void : notify(occurrence)))",
    without: "Effect.andThen(notify(occurrence), change)"
  },
  {
    name: "a notification has a new id at each attempt",
    file: "src/operations/work/notify/DeliveryJob.ts",
    guard: "Effect.result(deliver(payload))",
    without:
      "Effect.result(deliver({ ...payload, fields: { ...payload.fields, delivery_id: `${job.id}/${job.attempts}` } }))"
  },
  {
    name: "a receiver that is away is not told later",
    file: "src/operations/work/notify/DeliveryJob.ts",
    guard:
      "  return Retry(failure, afterSeconds === undefined ? {} : { atLeast: Math.min(afterSeconds, terms.retryMaxSeconds) })",
    without: "  return Done()"
  },
  {
    name: "background work that dies stays dead",
    file: "src/engine/Supervised.ts",
    guard: "        yield* Effect.sleep(waitMillis)\n",
    without: "        yield* Effect.never\n"
  },
  {
    name: "a request that waits for a job of another process is not woken at its end",
    file: "src/engine/queue/Ends.ts",
    guard: "          awake.wake()\n          return Effect.sync(() => {\n",
    without: "          return Effect.sync(() => {\n"
  },
  {
    name: "a job that cannot be read fails the claim of all",
    file: "src/engine/queue/Claims.ts",
    guard: "import { lenient, partitioned } from \"../sql/Query.ts\"\n",
    without: `import { all, lenient } from "../sql/Query.ts"
const partitioned = (statement, params) =>
  Effect.map(all(statement, params), (readable) => ({ readable, unreadable: [] }))
`
  },
  {
    name: "what a credential permits is not read again at finalize",
    file: "src/operations/acme/Finalize.ts",
    guard: "  yield* refuseOutside(caller, order, scope, kind)\n",
    without: ""
  },
  {
    name: "the accounts of a deleted credential may order anything",
    file: "src/operations/operator/EabDeletion.ts",
    guard: "    if (names !== undefined) yield* eabScopes.loseScope(kid, yield* currentSeconds)\n",
    without: ""
  },
  {
    name: "an order is issued although its credential was deleted since its finalize",
    file: "src/store/orders/OrderRows.ts",
    guard: "c.status = 'valid' AND c.scope_lost IS NULL",
    without: "c.status = 'valid'"
  },
  {
    name: "names are covered whatever the credential says",
    file: "src/operations/acme/Orders.ts",
    guard: "  if (outside !== undefined) return yield* rejected(outside, names)\n",
    without: ""
  },
  {
    name: "a kind is given whatever the credential says",
    file: "src/operations/acme/Scope.ts",
    guard: "filter((name) => kinds === undefined || kinds.includes(name))",
    without: "filter(() => kinds === undefined || kinds.length > 0)"
  },
  {
    name: "a certificate lives as long as its kind says, whatever the credential says",
    file: "src/operations/work/Issuance.ts",
    guard: "kind: boundedKind(kind, order.validityBound),",
    without: "kind: order.validityBound === undefined ? boundedKind(kind, undefined) : kind,"
  },
  {
    name: "a credential proves its names although it does not say so",
    file: "src/operations/acme/Scope.ts",
    guard: "  prevalidated === true && names !== undefined\n",
    without: "  prevalidated !== false && names !== undefined\n"
  },
  {
    name: "the orders of a credential are counted before, not with, the next one",
    file: "src/operations/acme/Orders.ts",
    guard: "        if (exhausted !== undefined) return exhausted\n        yield* accounts.lock",
    without: "        yield* accounts.lock"
  },
  {
    name: "a credential may bind an account more at each of two requests at once",
    file: "src/operations/acme/Binding.ts",
    guard: "return credential !== undefined && (yield* exhaustion(credential, now)) === undefined",
    without: "return credential !== undefined"
  },
  {
    name: "a credential binds accounts after its end",
    file: "src/operations/acme/Binding.ts",
    guard: "if (expiresAt !== undefined && now >= expiresAt) return \"expired\"",
    without: "if (expiresAt !== undefined && now < 0) return \"expired\""
  },
  {
    name: "a pattern for any depth covers one label",
    file: "src/domain/CredentialScope.ts",
    guard: "return name.endsWith(pattern.slice(2))\n",
    without: "return name.slice(name.indexOf(\".\")) === pattern.slice(2)\n"
  },
  {
    name: "an order with any credential is withdrawn as if the credential were deleted",
    file: "src/operations/work/IssuanceEnds.ts",
    guard:
      "({ accountStatus, blockedAt, scopeLost, unproved }: Found): boolean =>\n  accountStatus === \"valid\" && blockedAt === undefined && scopeLost === undefined &&",
    without:
      "({ accountStatus, blockedAt, eabKid, unproved }: Found): boolean =>\n  accountStatus === \"valid\" && blockedAt === undefined && eabKid === undefined &&"
  },
  {
    name: "a CA that waits issues before its time",
    file: "src/domain/IssuerState.ts",
    guard: "if (ca.from !== undefined && ca.from <= now && (",
    without: "if (ca.from !== undefined && ca.from <= now + 1_000_000 && ("
  },
  {
    name: "a certificate is stored although its CA was compromised meanwhile",
    file: "src/store/orders/OrderRows.ts",
    guard: "     AND ${uncompromised(\":issuer\")}\n",
    without: "     AND (:issuer IS NULL OR true)\n"
  },
  {
    name: "the audit trail says of a change only what it has led to",
    file: "src/operations/operator/Eab.ts",
    guard: "before: statedScope(before), after: statedScope(after)",
    without: "before: statedScope(after), after: statedScope(after)"
  }
]

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Returns how often the guard occurs in its file. The bug can be planted only if the guard occurs exactly once. */
export const guardsOf = ({ file, guard }: PlantedBug): number =>
  readFileSync(join(root, file), "utf8").split(guard).length - 1

/** Makes a copy of the project with a bug, in a folder that `remove` deletes. */
export const plant = (bug: PlantedBug): { readonly folder: string; readonly remove: () => void } => {
  if (guardsOf(bug) !== 1) throw new Error(`${bug.file} has the guard ${guardsOf(bug)} times: ${bug.guard}`)
  const folder = mkdtempSync(join(tmpdir(), "acme-planted-"))
  for (const part of ["src", "test", "migrations", "package.json", "tsconfig.json"]) {
    cpSync(join(root, part), join(folder, part), { recursive: true })
  }
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
  const path = join(folder, bug.file)
  writeFileSync(path, readFileSync(path, "utf8").replace(bug.guard, () => bug.without))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

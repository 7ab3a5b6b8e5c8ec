import * as Effect from "effect/Effect"
import type { ReceiverName } from "../../../domain/ReceiverName.ts"
import { caCompromise, keyCompromise } from "../../../domain/RevocationReason.ts"
import { currentSeconds, rfc3339 } from "../../../engine/Time.ts"
import * as auditSearch from "../../../store/AuditSearch.ts"
import * as auditSignals from "../../../store/AuditSignals.ts"
import { find as findCheck } from "../../../store/ChainChecks.ts"
import * as receivers from "../AuditReceiverRecords.ts"
import type { Concern } from "./Concern.ts"
import { concern, counted } from "./Concern.ts"

/* What the audit trail needs attention for. */

const hourSeconds = 3600
const daySeconds = 86_400
const lossDays = 7
const uncheckedSeconds = 3 * daySeconds
const behindSeconds = 1800

/** The reasons of revocations that say that a key is lost. */
const lostKeys = [
  {
    reason: keyCompromise,
    cause: "key_compromised",
    whose: "its key",
    effect: "Whoever has the key can pass for its owner with every client that checks no revocations."
  },
  {
    reason: caCompromise,
    cause: "ca_compromised",
    whose: "the key of the CA",
    effect: "Only those who no longer trust the CA are safe."
  }
] as const

const trailOf = (event: string, since: number) => ({
  path: `/ui/audit?event=${event}&since=${encodeURIComponent(rfc3339(since))}`,
  command: `audit list --event ${event} --since ${rfc3339(since)}`
})

const losses = Effect.gen(function*() {
  const since = (yield* currentSeconds) - lossDays * daySeconds
  const count = yield* auditSearch.countMatches({ event: "changes_lost", since })
  if (count === 0) return []
  return [concern("changes_lost", {
    title: `The database went back to an older state ${counted(count, "time")} within ${lossDays} days`,
    effect: "Certificates and revocations after that state are not recorded. Revocations may have to be repeated.",
    count,
    way: { label: "Show the audit trail", ...trailOf("changes_lost", since) }
  })]
})

const compromises = Effect.gen(function*() {
  const since = (yield* currentSeconds) - hourSeconds
  const rows = yield* auditSignals.revokedSince(since)
  return lostKeys.flatMap(({ cause, effect, reason, whose }) => {
    const count = rows.filter((row) => row.reason === String(reason)).reduce((sum, row) => sum + row.count, 0)
    if (count === 0) return []
    return [concern(cause, {
      severity: "warning",
      title: `${
        counted(count, "certificate was", "certificates were")
      } revoked within the hour because others may know ${whose}`,
      effect,
      count,
      way: { label: "Show the revocations", ...trailOf("certificate_revoked", since) }
    })]
  })
})

const chain = Effect.gen(function*() {
  const [check, now] = [yield* findCheck, yield* currentSeconds]
  if (check === undefined) return []
  const found: Array<Concern> = []
  const way = { label: "Show the check", path: "/ui/audit/chain", command: "audit verify" }
  const faults = Math.max(check.endedFaults ?? 0, check.faults)
  if (faults > 0) {
    found.push(concern("audit_chain_faulty", {
      title: `The check of the audit chain found ${counted(faults, "fault")}`,
      effect: "Rows of the audit trail were changed, removed, inserted or reordered.",
      count: faults,
      way
    }))
  }
  const checkedAt = check.endedAt ?? check.begunAt
  if (now - checkedAt > uncheckedSeconds) {
    found.push(concern("audit_chain_unchecked", {
      title: "The audit chain was not checked for three days",
      effect: "A change of the audit trail would not be noticed.",
      since: checkedAt,
      way
    }))
  }
  return found
})

const pushed = (configured: ReadonlyArray<ReceiverName>) =>
  Effect.map(
    receivers.list(configured),
    (all) =>
      all.filter(({ configured, lagSeconds }) => configured === true && lagSeconds > behindSeconds).map((
        { error, lagRows, name }
      ) =>
        concern("audit_receiver_behind", {
          title: `The receiver ${name} of the audit trail is behind`,
          effect: `It lacks about ${counted(lagRows, "row")}.`,
          count: lagRows,
          error,
          way: { label: "Show the receivers", path: "/ui/audit/chain", command: "audit receivers" }
        })
      )
  )

/** Returns the concerns about the audit trail, and those that its rows show. */
export const trailConcerns = (configured: ReadonlyArray<ReceiverName>) =>
  Effect.map(
    Effect.all([losses, compromises, chain, pushed(configured)]),
    (all): ReadonlyArray<Concern> => all.flat()
  )

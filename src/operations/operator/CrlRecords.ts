import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { encodePem } from "../../crypto/asn1/Pem.ts"
import { readStoredChain } from "../../crypto/x509/Chain.ts"
import { listedSerials } from "../../crypto/x509/Crl.ts"
import { stateAt } from "../../domain/IssuerState.ts"
import { AlreadyRevoked, BadRequest, IssuerStopped, NoSuch, NumberNotAbove } from "../../domain/OperatorError.ts"
import { emit } from "../../domain/words/Log.ts"
import { sharedSeconds } from "../../engine/queue/SharedClock.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { afterCommit, transaction } from "../../engine/sql/Database.ts"
import { kept } from "../../engine/sql/KeptCounts.ts"
import { tellUnreadable } from "../../engine/sql/Query.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { Issuer } from "../../services/signing/Issuers.ts"
import { Issuers } from "../../services/signing/Issuers.ts"
import * as audit from "../../store/AuditRows.ts"
import * as orderSearch from "../../store/orders/OrderSearch.ts"
import * as compromised from "../../store/revocation/CompromisedIssuers.ts"
import * as crls from "../../store/revocation/Crls.ts"
import * as revocations from "../../store/revocation/Revocations.ts"
import type { AtKeyboard } from "../Operator.ts"
import { actorOf } from "../Operator.ts"
import { refuseStopped, stoppedShown } from "../ProfileHealth.ts"
import { unreadableChain } from "../StoredCertificate.ts"
import { enqueueList } from "../work/crl/ListJob.ts"
import type { CaState } from "./CaState.ts"
import { caStateOf } from "./CaState.ts"
import { readForOperator } from "./OperatorReads.ts"
import { everyOfSerial } from "./Serials.ts"

/** A CA with the state of its list. Times are epoch seconds. */
export interface CrlView {
  readonly issuer: string
  /** The CA. Absent if no served profile signs with this CA any more. */
  readonly ca: Issuer | undefined
  readonly profiles: ReadonlyArray<string>
  /** The stored list. Absent until a worker has seen the CA. */
  readonly stored: Effect.Success<ReturnType<typeof crls.findHead>>
  /** The number of certificates on the stored list. */
  readonly entries: number
  /** The number of recorded revocations that are not on the list. */
  readonly unlisted: number
  /** The state of the list. A `stopped` list is not signed again, and the CA revokes nothing. */
  readonly state: "ok" | "due" | "expired" | "missing" | "stopped"
  /** Why the list is `stopped`. */
  readonly trouble?: string | undefined
  /** The state of the CA itself. Absent if no served profile signs with this CA any more. */
  readonly caState: CaState | undefined
  /** What the CA does now. Absent if no served profile has this CA, unless the CA is compromised. */
  readonly issuance: KnownCa["issuance"] | "compromised" | undefined
}

const pageSize = 2000
const halfValidity = 7 * 86_400 / 2

const stateOf = (nextUpdate: number, unlisted: number, now: number): CrlView["state"] =>
  nextUpdate <= now ? "expired" : unlisted > 0 || nextUpdate - now < halfValidity ? "due" : "ok"

interface Compared {
  readonly entries: number
  readonly unlisted: number
}

// One entry of a list costs as much time as this number of rows: reading and comparing the entry takes as long as
// counting the rows.
const rowsPerEntry = 100

/** Compares the stored list with the recorded revocations. */
const compare = Effect.fnUntraced(function*(issuer: string) {
  const stored = yield* crls.shown(issuer)
  const listed = stored === undefined
    ? new Set<string>()
    : Result.getOrElse(listedSerials(stored.der), () => new Set<string>())
  let [after, unlisted] = ["", 0]
  for (;;) {
    const page = yield* revocations.shownPage(issuer, after, pageSize)
    unlisted += page.filter(({ serial }) => !listed.has(serial)).length
    after = page.at(-1)?.serial ?? after
    if (page.length < pageSize) return { entries: listed.size, unlisted } satisfies Compared
    yield* Effect.yieldNow
  }
})

const view = Effect.fnUntraced(function*(
  issuer: string,
  found: KnownCa | undefined
): Effect.fn.Return<CrlView, StorageFailed, Database> {
  const stored = yield* crls.shownHead(issuer)
  const now = yield* currentSeconds
  const trouble = (yield* stoppedShown).get(issuer)
  const ca = found?.ca
  const known = {
    issuer,
    ca,
    profiles: found?.profiles ?? [],
    stored,
    caState: ca && caStateOf(ca, now),
    issuance: found?.issuance,
    trouble
  }
  const isStopped = trouble !== undefined
  if (stored === undefined) return { ...known, entries: 0, unlisted: 0, state: isStopped ? "stopped" : "missing" }
  const recorded = yield* revocations.count(issuer)
  const { entries, unlisted } = yield* kept(
    `crl ${issuer} ${stored.crlNumber} ${recorded}`,
    (found: Compared) => found.entries * rowsPerEntry,
    compare(issuer)
  )
  return { ...known, entries, unlisted, state: isStopped ? "stopped" : stateOf(stored.nextUpdate, unlisted, now) }
})

/** A CA of the configuration: what it does now, and for which profiles. */
interface KnownCa {
  readonly ca: Issuer
  readonly issuance: Issuance
  readonly profiles: ReadonlyArray<string>
}

type Issuance = ReturnType<typeof stateAt>

/** Returns the state of a CA that has these states at two profiles: it issues if it issues at one of them. */
const busier = (one: Issuance, other: Issuance): Issuance =>
  (["issuing", "waiting"] as const).find((state) => one === state || other === state) ?? "retired"

/** Returns the CAs of these profiles. Each CA is listed once, with the names of its profiles. */
export const signing = Effect.fnUntraced(function*(profiles: ReadonlyArray<string>) {
  const issuers = yield* Issuers
  const now = yield* sharedSeconds
  const named = new Map<string, KnownCa>()
  for (const profile of profiles) {
    const cas = issuers.all(profile)
    for (const one of cas) {
      const { issuer: ca } = one
      const here = stateAt(one, cas, now)
      const { issuance = here, profiles = [] } = named.get(ca.id) ?? {}
      named.set(ca.id, { ca, issuance: busier(here, issuance), profiles: [...profiles, profile] })
    }
  }
  return named
})

/** Returns the lists of the CAs of these profiles, then the lists of CAs that no profile uses any more. */
export const list = Effect.fn("CrlRecords.list")(function*(profiles: ReadonlyArray<string>) {
  const named = yield* signing(profiles)
  const stored = yield* crls.issuers()
  const ids = [...named.keys(), ...stored.map(({ issuer }) => issuer).filter((issuer) => !named.has(issuer))]
  const lost = new Set((yield* compromised.shownAll).map(({ issuer }) => issuer))
  return yield* readForOperator(
    Effect.forEach(
      ids,
      (id) =>
        Effect.map(
          view(id, named.get(id)),
          (found): CrlView => lost.has(id) ? { ...found, issuance: "compromised" } : found
        )
    )
  )
})

/** Returns one CA with the state of its list. The CA must be one of these profiles, or have a stored list. */
export const show = Effect.fn("CrlRecords.show")(function*(profiles: ReadonlyArray<string>, issuer: string) {
  const found = yield* readForOperator(Effect.flatMap(signing(profiles), (named) => view(issuer, named.get(issuer))))
  if (found.ca === undefined && found.stored === undefined) return yield* new NoSuch({ noun: "issuer", id: issuer })
  const lost = (yield* compromised.shownAll).some((one) => one.issuer === issuer)
  return lost ? { ...found, issuance: "compromised" as const } : found
})

/** Returns the stored list of one CA as DER. */
export const revocationList = Effect.fn("CrlRecords.revocationList")(function*(issuer: string) {
  return ((yield* crls.find(issuer)) ?? (yield* new NoSuch({ noun: "issuer", id: issuer }))).der
})

/** Returns the certificate of a CA as PEM. A profile must sign with this CA. */
export const certificatePem = Effect.fn("CrlRecords.certificatePem")(
  function*(profiles: ReadonlyArray<string>, issuer: string) {
    const found = (yield* signing(profiles)).get(issuer) ?? (yield* new NoSuch({ noun: "issuer", id: issuer }))
    return encodePem("CERTIFICATE", found.ca.certificate)
  }
)

/** Returns the number and dates of the stored list of one CA. */
export const find = Effect.fn("CrlRecords.find")(function*(issuer: string) {
  return (yield* crls.findHead(issuer)) ?? (yield* new NoSuch({ noun: "issuer", id: issuer }))
})

/**
 * Sets the stored number to `above`, so that the next list has a higher number than any list that clients have seen.
 * The list is due at once. Operators use this after a restore.
 */
export const raise = Effect.fn("CrlRecords.raise")(
  function*(operator: AtKeyboard, issuer: string, above: number) {
    const { crlNumber: before, nextUpdate: end } = yield* find(issuer)
    // The list becomes due, but not expired, because the stored list is still valid.
    const nextUpdate = Math.min(end, (yield* currentSeconds) + halfValidity - 1)
    const raised = yield* transaction(Effect.gen(function*() {
      const done = yield* crls.raise(issuer, { before, number: above, nextUpdate })
      if (done === undefined) return false
      yield* enqueueList(issuer)
      yield* audit.insert({
        event: "crl_number_raised",
        actorKind: "cli",
        actorId: actorOf(operator).actorId,
        detail: { issuer, before, after: above }
      })
      return true
    }))
    if (!raised) return yield* new NumberNotAbove({ current: (yield* find(issuer)).crlNumber })
    return { issuer, before, after: above }
  },
  Effect.uninterruptible
)

/**
 * Adds a certificate that no order has any more to the list of its CA. The expiry of the certificate is unknown, so the
 * entry stays on the list forever. Operators use this after a restore.
 */
export const revokeUnknown = Effect.fn("CrlRecords.revokeUnknown")(
  function*(operator: AtKeyboard, issuer: string, serial: string, reason: number | undefined) {
    yield* find(issuer)
    yield* Effect.catchTag(refuseStopped(issuer), "ListsStopped", ({ trouble }) => new IssuerStopped({ trouble }))
    const orders = yield* orderSearch.search({ certSerial: serial }, everyOfSerial)
    for (const { id } of orders) {
      const certificate = (yield* orderSearch.findRecord(id))?.certificate
      if (certificate === undefined) continue
      const stored = readStoredChain(certificate)
      if (stored === undefined) yield* tellUnreadable(unreadableChain("order_record", id))
      if (stored?.issuerId !== issuer) continue
      return yield* new BadRequest({ detail: `This is the certificate of order ${id}; revoke it by order revoke.` })
    }
    const now = yield* currentSeconds
    const isNew = yield* transaction(Effect.gen(function*() {
      const row = yield* revocations.insert({ issuer, serial, now, reason, notAfter: undefined })
      if (row === undefined) return false
      yield* enqueueList(issuer)
      yield* audit.insert({
        event: "certificate_revoked",
        ...actorOf(operator),
        certSerial: serial,
        ...(reason === undefined ? {} : { reason: String(reason) }),
        detail: { authorized_by: "operator" }
      })
      yield* afterCommit(emit("certificate_revoked", { order_id: undefined, cert_serial: serial, code: reason }))
      return true
    }))
    if (!isNew) return yield* new AlreadyRevoked()
  },
  Effect.uninterruptible
)

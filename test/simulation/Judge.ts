import { fromBER } from "asn1js"
import { X509Certificate } from "node:crypto"
import { CertificateRevocationList } from "pkijs"
import { chainIn, issuersQuery } from "../support/StoredChains.ts"
import type { Authorities } from "./Authorities.ts"
import type { Facts } from "./Facts.ts"
import { factsOf } from "./Facts.ts"
import type { Grants } from "./Grants.ts"
import { grantIn, grantText } from "./Grants.ts"
import { trailFaults } from "./GrantTrail.ts"
import type { Ledger } from "./Ledger.ts"
import { lostIn, snapshotOf } from "./Loss.ts"
import type { Program } from "./Program.ts"
import type { Row, Store } from "./Store.ts"
import type { Known } from "./Tables.ts"
import { authorizationMoves, bare, challengeMoves, id, orderMoves, queries, uuid } from "./Tables.ts"

/*
 * Checks the invariants. After each commit, the judge compares the tables with their previous state. At the end, when
 * no work is left, it compares the tables with the answers that clients got.
 */

/** The tables whose rows are compared with their previous state. */
type Moving = Exclude<keyof typeof queries, "credentials">

/** A judge of one run, which calls `violated` with each violation. */
export class Judge {
  readonly #store: () => Store
  readonly #ledger: Ledger
  readonly #facts: Facts
  readonly #grants: Grants
  readonly #authorities: Authorities
  readonly #shown: ReadonlySet<string>
  readonly #program: Program
  /** Serial numbers of certificates that belong to no order, according to the log. */
  readonly #told = new Set<string>()
  readonly #violated: (what: string) => void
  readonly #lapsedBefore: () => number
  readonly #furthestClock: () => number
  readonly #ended: (subject: string) => void
  readonly #known: { readonly [table in Moving]: Known } = {
    orders: new Map(),
    challenges: new Map(),
    authorizations: new Map(),
    accounts: new Map(),
    crls: new Map()
  }
  readonly #lists = new Map<string, { readonly der: string; readonly serials: ReadonlySet<string> }>()

  constructor(options: {
    readonly store: () => Store
    readonly ledger: Ledger
    readonly facts: Facts
    readonly grants: Grants
    readonly authorities: Authorities
    readonly shown: ReadonlySet<string>
    readonly program: Program
    readonly violated: (what: string) => void
    /** Orders of this epoch second or earlier have expired, by the clock that is furthest ahead. */
    readonly lapsedBefore: () => number
    /** Returns the latest time that any clock has shown, in milliseconds. */
    readonly furthestClock: () => number
    /** Called with each order that has just got its certificate or failed, and each challenge that got its verdict. */
    readonly ended: (subject: string) => void
  }) {
    this.#store = options.store
    this.#ledger = options.ledger
    this.#facts = options.facts
    this.#grants = options.grants
    this.#authorities = options.authorities
    this.#shown = options.shown
    this.#program = options.program
    this.#violated = options.violated
    this.#lapsedBefore = options.lapsedBefore
    this.#furthestClock = options.furthestClock
    this.#ended = options.ended
  }

  #moved(
    table: Moving,
    moves: { readonly [from: string]: ReadonlyArray<string> },
    changed: (row: Row, before: Row | undefined) => void
  ): void {
    const known = this.#known[table]
    for (const row of this.#store().rows(queries[table])) {
      const key = String(row["id"])
      const before = known.get(key)
      known.set(key, row)
      const [from, to] = [before?.["status"], row["status"]]
      if (from !== undefined && from !== to && !moves[String(from)]?.includes(String(to))) {
        this.#violated(`${table}: ${uuid(key)} went from ${String(from)} to ${String(to)}`)
      }
      for (const fact of factsOf(table, row, before)) this.#facts.happened(fact)
      changed(row, before)
    }
  }

  /** Compares the tables to which a transaction wrote with their state before the transaction. */
  committed(written: ReadonlySet<string>): void {
    if (written.has("eab_keys")) this.#grants.changed(this.#store().rows(queries.credentials))
    if (written.has("compromised_issuers")) this.#authorities.changed(this.#store())
    if (written.has("accounts")) this.#accountsChanged()
    if (written.has("challenges")) {
      this.#moved("challenges", challengeMoves, (row, before) => {
        if (row["status"] === "valid" && before?.["status"] !== "valid" && !this.#shown.has(String(row["token"]))) {
          this.#violated(`a challenge is valid whose proof nobody was shown: ${String(row["token"])}`)
        }
        if (before?.["status"] === "processing" && row["status"] !== "processing") this.#ended(uuid(String(row["id"])))
      })
    }
    if (written.has("authorizations")) this.#moved("authorizations", authorizationMoves, () => {})
    if (written.has("orders")) this.#ordersChanged()
    if (written.has("crls")) {
      this.#moved("crls", {}, (row, before) => {
        if (before === undefined || before["der"] === row["der"]) return
        if (Number(row["crl_number"]) <= Number(before["crl_number"])) {
          this.#violated(`the CRL number went from ${String(before["crl_number"])} to ${String(row["crl_number"])}`)
        }
      })
    }
    if (["orders", "challenges", "jobs"].some((table) => written.has(table))) this.#checkWork()
    if (written.has("jobs")) this.#facts.settled(this.#store())
    if (["revocations", "crls", "jobs"].some((table) => written.has(table))) this.#checkLists()
  }

  /** Compares the database before and after a power cut, which `cut` makes, with the clients' answers. */
  outlives(cut: () => void): void {
    const before = snapshotOf(this.#store())
    cut()
    const after = snapshotOf(this.#store())
    for (const lost of lostIn(before, after, this.#ledger)) this.#violated(lost)
    // The judge forgets rows that the power cut lost, but remembers rows that were swept, because they existed.
    this.#grants.undone(after)
    this.#authorities.changed(this.#store())
    for (const table of ["orders", "challenges", "authorizations", "accounts", "crls"] as const) {
      for (const [key, lost] of before[table]) {
        const row = after[table].get(key)
        for (const fact of factsOf(table, lost, row)) this.#facts.undone(fact)
        if (row === undefined) this.#known[table].delete(key)
      }
      // The power cut may have undone a deletion.
      for (const [key, row] of after[table]) this.#known[table].set(key, row)
    }
  }

  #accountsChanged(): void {
    const made: Array<Row> = []
    this.#moved("accounts", { valid: ["deactivated", "revoked"] }, (row, before) => {
      if (before === undefined) made.push(row)
      else if (before["scope_lost"] !== null && before["scope_lost"] !== row["scope_lost"]) {
        this.#violated(`the account ${uuid(String(row["id"]))} is not restricted any more by its deleted credential`)
      }
    })
    this.#grants.registered(made)
  }

  #ordersChanged(): void {
    const made: Array<Row> = []
    const changed: Array<{ readonly row: Row; readonly before: Row | undefined }> = []
    this.#moved("orders", orderMoves, (row, before) => {
      if (before === undefined) made.push(row)
      changed.push({ row, before })
    })
    this.#grants.placed(made)
    for (const { before, row } of changed) this.#orderChanged(row, before)
  }

  #proofsOf(order: Row): ReadonlyArray<Row> {
    return [...this.#known.authorizations.values()].filter((one) => one["order_id"] === order["id"])
  }

  /** Returns whether nothing has ended that an order needs until it is issued. */
  #mayBeIssued(order: Row): boolean {
    const proofs = this.#proofsOf(order)
    return this.#known.accounts.get(String(order["account"]))?.["status"] === "valid" &&
      !this.#grants.isLost(String(order["id"])) && proofs.length === order["names"] &&
      proofs.every(({ status }) => status === "valid")
  }

  #orderChanged(row: Row, before: Row | undefined): void {
    if (row["status"] === "processing" && before?.["status"] !== "processing") this.#grants.finalized(String(row["id"]))
    const name = uuid(String(row["id"]))
    if (before?.["status"] === "processing" && row["status"] !== "processing") this.#ended(name)
    if (row["is_withdrawn"] === 1 && before?.["status"] !== "invalid" && this.#mayBeIssued(row)) {
      this.#violated(`the order ${name} was withdrawn, although its account and all of its authorizations are valid`)
    }
    if (row["status"] === "valid" && before?.["status"] !== "valid") {
      const proofs = this.#proofsOf(row)
      if (proofs.length !== row["names"]) {
        this.#violated(
          `the order ${name} was issued with ${proofs.length} authorizations for ${String(row["names"])} names`
        )
      }
      const lacking = proofs.filter(({ status }) => status !== "valid")
      if (lacking.length > 0) {
        this.#violated(`the order ${name} was issued with an authorization that is ${String(lacking[0]?.["status"])}`)
      }
      if (this.#known.accounts.get(String(row["account"]))?.["status"] !== "valid") {
        this.#violated(`the order ${name} was issued to an account that is not valid`)
      }
      const [found] = this.#store().rows(
        `SELECT certificate, leaf, issuers, profile FROM orders WHERE id = x'${String(row["id"])}'`
      )
      const chain = found === undefined ? undefined : chainIn(found, this.#store().rows(issuersQuery))
      if (chain === undefined) this.#violated(`the order ${name} is valid without a certificate`)
      else {
        const leaf = new X509Certificate(chain)
        this.#grants.issued(String(row["id"]), String(row["kind"]), leaf)
        // A program signs for the other profile, as if it had a CA of its own.
        if (found?.["profile"] === "default") this.#authorities.issued(String(row["id"]), leaf)
      }
    }
    // The sweep ends an unfinished order, and only because of its age.
    const isLapsed = (before?.["status"] === "pending" || before?.["status"] === "ready") &&
      Number(row["created_at"]) <= this.#lapsedBefore()
    if (row["status"] === "invalid" && before?.["status"] !== "invalid" && row["has_error"] !== 1 && !isLapsed) {
      this.#violated(`the order ${name} is invalid for no reason`)
    }
    if (before === undefined) return
    if (before["cert_serial"] !== null && before["cert_serial"] !== row["cert_serial"]) {
      this.#violated(`the order ${name} has a second certificate`)
    }
    if (
      before["revoked_at"] !== null &&
      (before["revoked_at"] !== row["revoked_at"] || before["revocation_reason"] !== row["revocation_reason"])
    ) this.#violated(`the revocation of the order ${name} changed`)
  }

  /** Checks that there is a job for every record that waits for work. */
  #checkWork(): void {
    const lost = this.#store().rows(`
      SELECT 'order' AS what, ${
      id("id")
    } AS id FROM orders WHERE status = 'processing' AND NOT EXISTS (SELECT 1 FROM jobs
        WHERE jobs.kind IN ('signer_issue', 'signer_issue_restricted') AND jobs.status IN ('ready', 'running') AND jobs.dedup_key =
          lower(substr(hex(orders.id), 1, 8) || '-' || substr(hex(orders.id), 9, 4) || '-' || substr(hex(orders.id), 13, 4)
            || '-' || substr(hex(orders.id), 17, 4) || '-' || substr(hex(orders.id), 21)))
      UNION ALL
      SELECT 'challenge', ${id("id")} FROM challenges WHERE status = 'processing' AND NOT EXISTS (SELECT 1 FROM jobs
        WHERE jobs.kind = 'challenge_validate' AND jobs.status IN ('ready', 'running') AND jobs.dedup_key =
          lower(substr(hex(challenges.id), 1, 8) || '-' || substr(hex(challenges.id), 9, 4) || '-' ||
            substr(hex(challenges.id), 13, 4) || '-' || substr(hex(challenges.id), 17, 4) || '-' ||
            substr(hex(challenges.id), 21)))`)
    for (const row of lost) {
      this.#violated(`the ${String(row["what"])} ${uuid(String(row["id"]))} is processing without a job`)
    }
  }

  /**
   * Checks that each revocation that is on no list has a job that will sign a list, or a failed job that left this to
   * the daily sweep.
   */
  #checkLists(): void {
    const unlisted = this.#unlisted()
    if (unlisted.length === 0) return
    const jobs = this.#store().rows(`SELECT dedup_key FROM jobs
      WHERE kind = 'local_ca_crl_regenerate' AND status IN ('ready', 'running', 'failed')`)
    const awaited = new Set(jobs.map(({ dedup_key }) => dedup_key))
    for (const { issuer, serial } of unlisted) {
      if (!awaited.has(issuer)) this.#violated(`the revocation of ${String(serial)} is not listed and no job lists it`)
    }
  }

  /** Returns revocations that the stored list of their issuer does not contain. */
  #unlisted(): ReadonlyArray<Row> {
    return this.#store().rows("SELECT issuer, serial FROM revocations").filter(({ issuer, serial }) => {
      const der = this.#known.crls.get(String(issuer))?.["der"]
      return der === undefined || !this.#serialsOf(String(issuer), String(der)).has(bare(serial))
    })
  }

  /** Returns the serial numbers of a list. Each list is read only once. */
  #serialsOf(issuer: string, der: string): ReadonlySet<string> {
    const known = this.#lists.get(issuer)
    if (known?.der === der) return known.serials
    const list = new CertificateRevocationList({ schema: fromBER(new Uint8Array(Buffer.from(der, "hex"))).result })
    const serials = new Set(
      (list.revokedCertificates ?? []).map(({ userCertificate }) =>
        bare(Buffer.from(userCertificate.valueBlock.valueHexView).toString("hex"))
      )
    )
    this.#lists.set(issuer, { der, serials })
    return serials
  }

  /** Returns whether only periodic jobs are left. */
  isAtRest(): boolean {
    return this.unfinished().length === 0
  }

  /** Returns whether a list was left to the daily sweep because every attempt to sign it was lost. */
  isLeftToSweep(): boolean {
    return this.#store().rows("SELECT id FROM jobs WHERE kind = 'local_ca_crl_regenerate' AND status = 'failed'")
      .length > 0
  }

  /** Returns the second at which the daily sweep of the lists is due, or undefined while the sweep runs. */
  sweepIsDueAt(): number | undefined {
    const [row] = this.#store().rows("SELECT run_at FROM jobs WHERE kind = 'local_ca_crl_sweep' AND status = 'ready'")
    return row === undefined ? undefined : Number(row["run_at"])
  }

  /** Returns the live jobs, in a readable form. */
  unfinished(): ReadonlyArray<string> {
    return this.#store().rows(
      `SELECT kind, dedup_key, status, run_at, attempts, last_error FROM jobs
       WHERE status IN ('ready', 'running') AND dedup_key <> 'all'`
    ).map((row) => Object.values(row).join(" "))
  }

  /** Returns the second at which the next of the unfinished jobs is due, or undefined while one of them runs. */
  nextIsDueAt(): number | undefined {
    const [row] = this.#store().rows(
      `SELECT MIN(run_at) AS next, SUM(status = 'running') AS running FROM jobs
       WHERE status IN ('ready', 'running') AND dedup_key <> 'all'`
    )
    return row === undefined || Number(row["running"]) > 0 ? undefined : Number(row["next"])
  }

  /** Compares the database with the clients' answers. */
  atRest(): void {
    this.#holdsAnswers()
    this.#facts.areAudited(this.#store())
    this.#facts.areTold()
    this.#holdsCrl()
    this.#holdsOrphans()
    this.#authorities.atRest(this.#store(), this.#known.orders.values(), Math.floor(this.#furthestClock() / 1000))
    for (const fault of trailFaults(this.#store())) this.#violated(fault)
  }

  /** Records that an authorization was lost through no fault of the service. */
  forget(authorization: string): void {
    this.#known.authorizations.delete(authorization)
    for (const [key] of this.#known.challenges) {
      if (this.#store().rows(`SELECT 1 FROM challenges WHERE id = x'${key}'`).length === 0) {
        this.#known.challenges.delete(key)
      }
    }
  }

  /** Records that the log reports a certificate that belongs to no order. */
  told(serial: string): void {
    this.#told.add(bare(serial))
  }

  /**
   * Checks that each certificate that a program signed is stored or recorded, and that a recorded one is revoked,
   * unless it belongs to an order after all.
   */
  #holdsOrphans(): void {
    const stored = new Set([...this.#known.orders.values()].map(({ cert_serial }) => bare(cert_serial)))
    const rows = this.#store().rows("SELECT serial, status FROM orphaned_certificates")
    const recorded = new Set(rows.map(({ serial }) => bare(serial)))
    for (const { order, serial } of this.#program.settled()) {
      if (stored.has(serial) || recorded.has(serial) || this.#told.has(serial)) continue
      this.#violated(`the certificate ${serial} of the order ${order} was signed and is neither stored nor recorded`)
    }
    for (const serial of this.#program.revoked) {
      if (stored.has(serial)) this.#violated(`the certificate ${serial} was revoked as an orphan, and an order has it`)
    }
    for (const { serial, status } of rows) {
      const isOver = stored.has(bare(serial)) ? status === "stored" : status === "revoked" || status === "expired"
      if (!isOver) this.#violated(`the orphaned certificate ${String(serial)} is ${String(status)}`)
    }
  }

  #holdsAnswers(): void {
    const { accounts, orders } = this.#known
    const hex = (one: string) => one.replaceAll("-", "").toLowerCase()
    const ledger = this.#ledger
    for (const account of ledger.accounts) {
      if (!accounts.has(hex(account))) this.#violated(`the account ${account} is lost`)
    }
    for (const account of ledger.deactivated) {
      if (accounts.get(hex(account))?.["status"] !== "deactivated") this.#violated(`the account ${account} is back`)
    }
    for (const order of ledger.orders.keys()) {
      if (!orders.has(hex(order))) this.#violated(`the order ${order} is lost`)
    }
    for (const order of ledger.finalized) {
      const status = orders.get(hex(order))?.["status"]
      if (status !== "valid" && status !== "invalid") {
        this.#violated(`the order ${order}, whose finalize was accepted, is ${String(status)}`)
      }
    }
    for (const [order, serial] of ledger.certificates) {
      if (bare(orders.get(hex(order))?.["cert_serial"]) !== serial) this.#violated(`the certificate ${serial} is lost`)
    }
    const grants = new Map(this.#store().rows(queries.credentials).map((row) => [String(row["id"]), grantIn(row)]))
    for (const [kid, grant] of ledger.grants) {
      const found = grants.get(hex(kid))
      if (found === undefined || grantText(found) !== grant) {
        this.#violated(`the change of the credential ${kid} is lost`)
      }
    }
    for (const kid of ledger.deleted) if (grants.has(hex(kid))) this.#violated(`the credential ${kid} is back`)
    const serials = [...orders.values()].flatMap(({ cert_serial }) => cert_serial === null ? [] : [bare(cert_serial)])
    if (new Set(serials).size < serials.length) this.#violated("two certificates have one serial number")
    const revoked = new Set(
      [...orders.values()].flatMap(({ cert_serial, revoked_at }) => revoked_at === null ? [] : [bare(cert_serial)])
    )
    for (const serial of ledger.revoked) {
      if (!revoked.has(serial)) {
        this.#violated(`the certificate ${serial}, whose revocation was answered, is not revoked`)
      }
    }
  }

  #holdsCrl(): void {
    for (const { serial } of this.#unlisted()) {
      this.#violated(`the certificate ${String(serial)} is revoked and not on the revocation list`)
    }
    const rows = this.#store().rows("SELECT serial FROM revocations").map(({ serial }) => bare(serial))
    // The revocation of a certificate that has expired is forgotten once a list contained it.
    const expired = Math.floor(this.#furthestClock() / 1000)
    for (const { cert_not_after, cert_serial, revoked_at } of this.#known.orders.values()) {
      if (revoked_at !== null && Number(cert_not_after) >= expired && !rows.includes(bare(cert_serial))) {
        this.#violated(`the revoked certificate ${String(cert_serial)} is in no list`)
      }
    }
  }
}

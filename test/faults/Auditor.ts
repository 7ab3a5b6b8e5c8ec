import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { download } from "../interop/RevocationList.ts"
import type { OrderBody } from "../support/AcmeSession.ts"
import { problemType } from "../support/AcmeSession.ts"
import type { RawRow } from "../support/OpenDatabase.ts"
import { idText, sqlAt } from "../support/OpenDatabase.ts"
import { leafOf } from "../support/Openssl.ts"
import { issuerIdOf } from "../support/Openssl.ts"
import { checkStoredCertificates } from "../support/StoredCertificates.ts"
import { chainIn, issuersQuery } from "../support/StoredChains.ts"
import type { AccountEntry, Ledger, OrderEntry } from "./Ledger.ts"
import { patienceMs } from "./Load.ts"
import type { Site } from "./Site.ts"

/** What was found after a fault, in words. */
export interface Findings {
  /** Acknowledged facts that are no longer stored. */
  readonly lost: ReadonlyArray<string>
  /** Facts that occurred more than once. */
  readonly twice: ReadonlyArray<string>
}

const idOf = (url: string): string => url.slice(url.lastIndexOf("/") + 1)

/** More than a day, because the audit also waits for jobs whose time was written by a clock that was a day ahead. */
const farSeconds = 90_000

/** Waits until the queue has only periodic jobs. Even the jobs that a dead process held must be done. */
const awaitQuiet = async ({ databaseUrl }: Site): Promise<void> => {
  const alive = "SELECT kind, dedup_key, status FROM jobs WHERE status IN ('ready', 'running') AND dedup_key <> 'all'"
  for (const end = Date.now() + patienceMs;; await delay(200)) {
    const rows = await sqlAt(databaseUrl, `${alive} AND run_at < ${Math.floor(Date.now() / 1000) + farSeconds} LIMIT 5`)
    if (rows.length === 0) return
    if (Date.now() > end) throw new Error(`jobs are left: ${JSON.stringify(rows)}`)
  }
}

/** Returns the serials of the lists that are served, in lower case. */
const listedSerials = async ({ acme, otherCaFiles }: Site): Promise<ReadonlyArray<string>> => {
  const paths = otherCaFiles.length === 0
    ? ["crl"]
    : [acme.caFile, ...otherCaFiles].map((file) => `crl/${issuerIdOf(file)}`)
  const texts: Array<string> = []
  for (const path of paths) {
    const input = await download(new URL(path, acme.directoryUrl).href, join(acme.directory, "server.pem"))
    texts.push(execFileSync("openssl", ["crl", "-inform", "DER", "-noout", "-text"], { input }).toString())
  }
  const said = texts.join("")
  return [...said.matchAll(/Serial Number: (\S+)/g)].map(([, serial = ""]) => serial.toLowerCase())
}

const serialOf = (chain: string): string => leafOf(chain).serialNumber.toLowerCase()
const plain = (serial: string): string => serial.replace(/^0+/, "")

/** Runs `work` on every item, a few at a time. */
const each = async <A>(items: ReadonlyArray<A>, work: (item: A) => Promise<void>): Promise<void> => {
  const left = items.values()
  await Promise.all(Array.from({ length: 8 }, async () => {
    for (const item of left) await work(item)
  }))
}

/** Returns every value that occurs more than once. */
const repeated = (values: ReadonlyArray<string>): ReadonlyArray<string> => {
  const seen = new Set<string>()
  return values.filter((value) => seen.has(value) || !seen.add(value))
}

/** Returns the mistakes in an account that the client can see. */
const askAccount = async (entry: AccountEntry, lost: Array<string>, twice: Array<string>): Promise<void> => {
  const { session, url } = entry
  const answer = await session.post(url)
  if (entry.isDeactivated) {
    if (problemType(answer) !== "unauthorized") lost.push(`the deactivation of ${url}: ${answer.status}`)
    return
  }
  if (answer.status !== 200) {
    lost.push(`${url}: ${answer.status} ${answer.text}`)
    return
  }
  const again = await session.post(session.directory.newAccount, { onlyReturnExisting: true }, { identify: "jwk" })
  if (again.status !== 200) lost.push(`the key of ${url}: ${again.status}`)
  else if (again.headers.location !== url) twice.push(`${url} is ${again.headers.location ?? "nowhere"} by its key`)
}

const isReasoned = async ({ account: { session } }: OrderEntry, order: OrderBody): Promise<boolean> => {
  if (order.error?.type !== undefined) return true
  for (const url of order.authorizations) {
    const { challenges, status } = await session.authorization(url)
    if (status === "invalid" && challenges.some(({ error }) => error?.type !== undefined)) return true
  }
  return false
}

/** Returns the mistakes in an order that the client can see. */
const askOrder = async (entry: OrderEntry, lost: Array<string>): Promise<void> => {
  const { account: { isDeactivated, session }, chain, isFinalized, name, url } = entry
  if (isDeactivated) return
  const answer = await session.post(url)
  if (answer.status !== 200) {
    lost.push(`${url}: ${answer.status} ${answer.text}`)
    return
  }
  const order = answer.json as OrderBody
  if (order.identifiers[0]?.value !== name) lost.push(`${url} is for another name`)
  if (order.status === "invalid" && !(await isReasoned(entry, order))) lost.push(`${url} is invalid without a reason`)
  if (isFinalized && order.status !== "valid" && order.status !== "invalid") lost.push(`${url} is ${order.status}`)
  if (order.status === "valid" && !isFinalized) lost.push(`${url} is valid though nobody finalized it`)
  if (chain !== undefined && order.certificate === undefined) lost.push(`the certificate of ${url}`)
  if (order.certificate === undefined) return
  const now = await session.download(order.certificate)
  if (leafOf(now).subjectAltName !== `DNS:${name}`) lost.push(`the certificate of ${url} is for another name`)
  if (chain !== undefined && now !== chain) lost.push(`the certificate of ${url} is another one now`)
}

/** Returns the mistakes in the database itself, which has the records of every client. */
const lookInto = async (site: Site, { accounts, orders }: Ledger, lost: Array<string>, twice: Array<string>) => {
  const { databaseUrl } = site
  const read = async (text: string) => await sqlAt(databaseUrl, text)
  const stored = new Map<string, RawRow>()
  for (const row of await read("SELECT id, status, certificate, leaf, issuers, cert_serial, revoked_at FROM orders")) {
    stored.set(idText(row["id"]), row)
  }
  const kept = await read(issuersQuery)
  const challenges = new Map<string, unknown>()
  for (const row of await read("SELECT id, status FROM challenges")) challenges.set(idText(row["id"]), row["status"])
  const listed = await listedSerials(site)
  const rows = await read("SELECT event, account_id, order_id, cert_serial FROM audit_log ORDER BY id")
  const told = (event: string, column: string): ReadonlyArray<string> =>
    rows.filter((row) => row["event"] === event).map((row) => String(row[column]))
  const [issued, revoked] = [told("certificate_issued", "order_id"), told("certificate_revoked", "cert_serial")]
  const [moved, deactivated] = [
    told("account_key_changed", "account_id"),
    told("account_deactivated", "account_id")
  ]

  for (const entry of orders) {
    const row = stored.get(idOf(entry.url))
    if (row === undefined) {
      lost.push(`${entry.url} is not in the database`)
      continue
    }
    if (entry.isFinalized && row["status"] !== "valid" && row["status"] !== "invalid") {
      lost.push(`${entry.url} is stored as ${String(row["status"])}`)
    }
    if (entry.chain !== undefined && chainIn(row, kept) !== entry.chain) lost.push(`the certificate of ${entry.url}`)
    for (const url of entry.challenges) {
      const status = challenges.get(idOf(url))
      if (status !== "valid" && status !== "invalid") lost.push(`${url} was answered and is ${String(status)}`)
    }
    if (!entry.isRevoked || entry.chain === undefined) continue
    const serial = plain(serialOf(entry.chain))
    if (row["revoked_at"] === null) lost.push(`the revocation of ${entry.url}`)
    if (!listed.some((one) => plain(one) === serial)) lost.push(`the revocation of ${entry.url}, in the list`)
    const isTold = revoked.some((one) => plain(one) === serial)
    if (!isTold) lost.push(`the audit row of the revocation of ${entry.url}`)
  }
  for (const { isDeactivated, isHearsay, keyChanges, url } of accounts) {
    const of = (ids: ReadonlyArray<string>) => ids.filter((id) => id === idOf(url)).length
    const [changes, ends] = [of(moved), of(deactivated)]
    if (changes > keyChanges) twice.push(`the keyChange of ${url}`)
    if (ends > 1) twice.push(`the deactivation of ${url}`)
    if (isHearsay) continue
    if (changes < keyChanges) lost.push(`the audit row of a keyChange of ${url}`)
    if (isDeactivated && ends === 0) lost.push(`the audit row of the deactivation of ${url}`)
  }
  for (const url of repeated(listed)) twice.push(`${url} in the revocation list`)
  for (const serial of repeated(revoked)) twice.push(`the audit row of the revocation of ${serial}`)
  for (const id of repeated(issued)) twice.push(`the audit row of the certificate of order ${id}`)
  const certified = [...stored].filter(([, row]) => row["cert_serial"] !== null)
  for (const serial of repeated(certified.map(([, row]) => String(row["cert_serial"])))) twice.push(`serial ${serial}`)
  const left = [...stored.values(), ...[...challenges.values()].map((status) => ({ status }))]
    .filter(({ status }) => status === "processing").length
  if (left > 0) lost.push(`${left} orders or challenges are processing, and no job is left`)
  const withRow = new Set(issued)
  for (const [id] of certified) if (!withRow.has(id)) lost.push(`the audit row of the certificate of order ${id}`)
}

/** Returns the mistakes in the logs, which are repeated events that may happen only once. */
const readLogs = ({ processes }: Site, twice: Array<string>): void => {
  const records = processes.flatMap((server) => server.records())
  const told = (event: string, ...fields: ReadonlyArray<string>): ReadonlyArray<string> =>
    records.filter((record) => record.fields["event"] === event)
      .map((record) => fields.map((field) => String(record.fields[field])).join(" "))
  for (const id of repeated(told("challenge_validated", "challenge_id"))) twice.push(`the verdict on challenge ${id}`)
  for (const id of repeated(told("order_finalized", "order_id"))) twice.push(`the certificate of order ${id}`)
}

/**
 * Waits until the queue has only periodic jobs, and then compares the service with the ledger, over ACME, in the
 * database and in the logs.
 */
export const audit = async (site: Site, ledger: Ledger): Promise<Findings> => {
  await awaitQuiet(site)
  const [lost, twice]: [Array<string>, Array<string>] = [[], []]
  await each(ledger.accounts, (entry) => askAccount(entry, lost, twice))
  await each(ledger.orders, (entry) => askOrder(entry, lost))
  await lookInto(site, ledger, lost, twice)
  readLogs(site, twice)
  await checkStoredCertificates(site.databaseUrl, site.workers[0]?.caFile ?? site.acme.caFile, ...site.otherCaFiles)
  return { lost, twice }
}

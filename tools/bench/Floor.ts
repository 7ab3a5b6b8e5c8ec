import Sqlite from "better-sqlite3"
import { Effect, Result } from "effect"
import type { KeyObject } from "node:crypto"
import { createPublicKey, randomBytes, randomUUID } from "node:crypto"
import { copyFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Client } from "pg"
import { encodePem } from "../../src/crypto/asn1/Pem.ts"
import { verifyEs256 } from "../../src/crypto/jose/Jws.ts"
import { checkChain } from "../../src/crypto/x509/Chain.ts"
import { parseCsr } from "../../src/crypto/x509/Csr.ts"
import { keyPurposes } from "../../src/crypto/x509/KeyPurpose.ts"
import { makeLeafIssuer, serialFrom } from "../../src/crypto/x509/Leaf.ts"
import { leafContent } from "../../src/crypto/x509/LeafContent.ts"
import { lintLeaf } from "../../src/crypto/x509/Lint.ts"
import { loadForSigning } from "../../src/services/signing/CaFiles.ts"
import type { Exchange, Kind } from "./Client.ts"
import { median } from "./Median.ts"
import type { CompiledStep, Dialect } from "./Statements.ts"
import { compile, insertNonces, isOfNewAccount, noncesPerBatch, noncesPerIssuance } from "./Statements.ts"

/*
 * Measures the floor: what one issuance would cost if a server did only the unavoidable work. Each piece of this work
 * is measured separately, in a loop. The input of the pieces comes from an issuance that the server has just made.
 */

/** CPU of each piece, in microseconds per issuance. */
export interface Cryptography {
  readonly verify: number
  readonly importKey: number
  readonly csr: number
  readonly leaf: number
  readonly lint: number
}

interface Material {
  readonly jwk: { readonly [member: string]: string }
  readonly key: KeyObject
  readonly signed: ReadonlyArray<{ readonly input: Buffer; readonly signature: Buffer }>
  readonly csr: Buffer
  readonly names: ReadonlyArray<string>
  readonly chain: string
}

interface Jws {
  readonly protected: string
  readonly payload: string
  readonly signature: string
}

const decode = <A>(encoded: string): A => JSON.parse(Buffer.from(encoded, "base64url").toString()) as A

const materialOf = (exchanges: ReadonlyArray<Exchange>): Material => {
  // Of several polls, only the last one is used.
  const byKind = new Map<Kind, Exchange>(exchanges.map((exchange) => [exchange.kind, exchange]))
  const of = (kind: Kind): Exchange => {
    const found = byKind.get(kind)
    if (found === undefined) throw new Error(`no ${kind} among the recorded requests`)
    return found
  }
  const jws = (kind: Kind) => JSON.parse(of(kind).requestBody) as Jws
  const { jwk } = decode<{ readonly jwk: Material["jwk"] }>(jws("newAccount").protected)
  const { csr } = decode<{ readonly csr: string }>(jws("finalize").payload)
  const { identifiers } = decode<{ readonly identifiers: ReadonlyArray<{ readonly value: string }> }>(
    jws("newOrder").payload
  )
  return {
    jwk,
    key: createPublicKey({ key: jwk, format: "jwk" }),
    signed: [...byKind.keys()].map((kind) => {
      const { payload, protected: header, signature } = jws(kind)
      return { input: Buffer.from(`${header}.${payload}`, "latin1"), signature: Buffer.from(signature, "base64url") }
    }),
    csr: Buffer.from(csr, "base64url"),
    names: identifiers.map(({ value }) => value),
    chain: of("certificate").answer.body
  }
}

const good = <A, E>(result: Result.Result<A, E>): A =>
  Result.getOrThrowWith(result, (error) => new Error(JSON.stringify(error)))

const demand = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(`the floor measures nothing: ${what}`)
}

const slices = 5

/** Returns the CPU microseconds of one call: the median of five measurements of `millis` milliseconds each. */
const costOf = (millis: number, work: () => void): number =>
  median(Array.from({ length: slices }, () => {
    let calls = 0
    const cpu = process.cpuUsage()
    const end = performance.now() + millis / slices
    do {
      for (let i = 0; i < 10; i++) work()
      calls += 10
    } while (performance.now() < end)
    const { system, user } = process.cpuUsage(cpu)
    return (user + system) / calls
  }))

const leafSeconds = 90 * 86_400

const makeCryptography = async (material: Material, caDirectory: string) => {
  const { chain, csr, jwk, key, names, signed } = material
  const { ca, key: caKey } = await Effect.runPromise(loadForSigning({
    cert_path: join(caDirectory, "ca.pem"),
    key_path: join(caDirectory, "ca.key"),
    key_source: "file",
    key_passphrase_file: "",
    pkcs11: { module_path: "", token_label: "", slot_id: -1, key_label: "", key_id: "", pin_file: "" },
    transit: { address: "", mount: "", namespace: "", key: "", key_version: 0, token_file: "", ca_path: "" }
  }))
  const urls = { crlDistributionPoints: [], caIssuerUrls: [] }
  const [issuerCertDer] = ca.certificates
  if (issuerCertDer === undefined) throw new Error("the server's CA has no certificate")
  const issuer = good(makeLeafIssuer({ issuerCertDer, ...urls }, caKey))
  const lintIssuer = { ...ca, ...urls }
  const parsed = good(parseCsr(csr))
  const now = Math.floor(Date.now() / 1000)
  const request = {
    spki: parsed.spki,
    keyType: parsed.keyType,
    names,
    commonName: undefined,
    content: leafContent({ usages: [keyPurposes.server_auth], policies: [], subject: [] }),
    serial: serialFrom(randomBytes(16)),
    notBefore: now - 3600,
    notAfter: now + leafSeconds
  }
  const build = () => Effect.runSync(issuer.build(request))
  const der = build()
  const pem = encodePem("CERTIFICATE", der) + ca.chainPem
  const isVerified = () => signed.every(({ input, signature }) => verifyEs256(input, key, signature))
  const isLinted = () =>
    lintLeaf(der, { issuer: lintIssuer, request }) === undefined
    && checkChain(pem, { spki: parsed.spki, names, now, issuer: ca, lintedLeaf: der }) === undefined
  demand(signed.length === 7, "the recorded issuance has not seven kinds of request")
  demand(isVerified(), "the recorded requests do not verify")
  demand(isLinted(), "the leaf does not pass its checks")
  demand(chain.length > 0 && pem.length > 0, "there is no chain")

  return (millis: number): Cryptography => ({
    verify: costOf(millis, isVerified),
    importKey: costOf(millis, () => createPublicKey({ key: jwk, format: "jwk" })),
    csr: costOf(millis, () => parseCsr(csr)),
    leaf: costOf(millis, build),
    lint: costOf(millis, isLinted)
  })
}

type Values = { [name: string]: unknown }

const reversed = (name: string): string => [...name].toReversed().join("")

/** Makes the values of one issuance in the form that the database engine needs. `now` is in epoch seconds. */
const makeValues = (dialect: Dialect, { chain, csr, names }: Material, now: number): Values => {
  const id = (): unknown => {
    const text = randomUUID()
    return dialect === "postgres" ? text : Buffer.from(text.replaceAll("-", ""), "hex")
  }
  const [name = ""] = names
  const unique = randomUUID()
  const values: Values = {
    account: id(),
    order: id(),
    authz: id(),
    challenge: id(),
    job: id(),
    profile: "default",
    pubkey: randomBytes(91),
    certPubkey: randomBytes(91),
    true: dialect === "postgres" ? true : 1,
    now,
    past: now - 604_800,
    later: now + 604_800,
    ip: "127.0.0.1",
    identifiers: JSON.stringify([{ type: "dns", value: name }]),
    identifier: JSON.stringify({ type: "dns", value: name }),
    name,
    rev: reversed(name),
    token: randomBytes(32).toString("base64url"),
    dedupKey: unique,
    payload: JSON.stringify({
      order_id: unique,
      profile: "default",
      csr: csr.toString("base64url"),
      client: { ip: "127.0.0.1", user_agent: "acme-svc-bench", request_id: unique }
    }),
    owner: "floor",
    certificate: chain,
    serial: randomBytes(16).toString("hex"),
    detail: JSON.stringify({ key_type: "ecdsa-p256", not_after: new Date((now + leafSeconds) * 1000).toISOString() })
  }
  for (let i = 0; i < noncesPerIssuance; i++) values[`nonce${i}`] = randomBytes(32).toString("base64url")
  return values
}

const issuancesPerBatch = noncesPerBatch / noncesPerIssuance

/** What a round repeats: the statements of whole issuances, or only those of new accounts. */
export type Extract = "issue" | "newAccount"

const noncesOf = (batch: ReadonlyArray<Values>, each: number): string =>
  JSON.stringify(batch.flatMap((values) => Array.from({ length: each }, (_, i) => values[`nonce${i}`])))

const makeBatch = (dialect: Dialect, material: Material, extract: Extract) => {
  const now = Math.floor(Date.now() / 1000)
  const batch = Array.from({ length: issuancesPerBatch }, () => makeValues(dialect, material, now))
  return { now, batch, nonces: noncesOf(batch, extract === "issue" ? noncesPerIssuance : 1) }
}

/** Copies the database. Every round begins with an empty copy, because a statement costs more in a grown database. */
const openSqlite = (file: string, synchronous: string) => {
  const copy = `${file}.copy`
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${copy}${suffix}`, { force: true })
  copyFileSync(file, copy)
  const database = new Sqlite(copy)
  database.pragma("journal_mode = WAL")
  database.pragma("foreign_keys = ON")
  database.pragma(`synchronous = ${synchronous === "grouped" ? "normal" : synchronous}`)
  const begin = database.prepare("BEGIN IMMEDIATE")
  const commit = database.prepare("COMMIT")
  const insert = database.prepare(insertNonces.sqlite)
  const whole = compile("sqlite").map(({ isTransaction, label, steps }) => ({
    label,
    isTransaction,
    steps: steps.map((step) => ({ ...step, statement: database.prepare(step.text) }))
  }))
  const plans = { issue: whole, newAccount: whole.filter(isOfNewAccount) }
  const act = (extract: Extract, values: Values) => {
    for (const { isTransaction, steps } of plans[extract]) {
      if (isTransaction) begin.run()
      for (const { keep, order, statement } of steps) {
        const parameters = order.map((name) => values[name])
        if (!statement.reader) {
          statement.run(parameters)
          continue
        }
        const [row] = statement.all(parameters) as ReadonlyArray<{ readonly id?: unknown }>
        if (keep !== undefined) values[keep] = row?.id
      }
      if (isTransaction) commit.run()
    }
  }
  const count = (sql: string): unknown => database.prepare(sql).pluck().get()
  return { database, insert, act, count }
}

const measureSqlite =
  (material: Material, file: string, synchronous: string) =>
  ({ extract, millis }: { readonly millis: number; readonly extract: Extract }): number => {
    const { act, count, database, insert } = openSqlite(file, synchronous)
    let microseconds = 0
    let issued = 0
    const end = performance.now() + millis
    do {
      const { batch, nonces, now } = makeBatch("sqlite", material, extract)
      const cpu = process.cpuUsage()
      insert.run(now, nonces)
      for (const values of batch) act(extract, values)
      const { system, user } = process.cpuUsage(cpu)
      microseconds += user + system
      issued += batch.length
    } while (performance.now() < end)
    const done = extract === "issue" ? issued : 0
    demand(
      count("SELECT count(*) FROM orders WHERE status = 'valid'") === done
        && count("SELECT count(*) FROM jobs WHERE status = 'done'") === done
        && count("SELECT count(*) FROM accounts") === issued,
      "not every order became valid"
    )
    database.close()
    return microseconds / issued
  }

const connectPostgres = async (url: string, count: number): Promise<ReadonlyArray<Client>> => {
  const clients = Array.from({ length: count }, () => new Client({ connectionString: url }))
  await Promise.all(clients.map((client) => client.connect()))
  return clients
}

/** The result of one run on PostgreSQL. */
export interface Bout {
  readonly issuances: number
  /** CPU of the process that sends the statements, in microseconds per issuance. */
  readonly microseconds: number
}

const poolMax = 10

const openPostgres = async (material: Material, url: string) => {
  const clients = await connectPostgres(url, poolMax)
  let statements = 0
  const named = (step: CompiledStep) => ({ ...step, name: `s${++statements}` })
  const whole = compile("postgres").map(({ isTransaction, label, steps }) => ({
    label,
    isTransaction,
    steps: steps.map(named)
  }))
  const plans = { issue: whole, newAccount: whole.filter(isOfNewAccount) }
  const act = async (extract: Extract, client: Client, values: Values) => {
    for (const { isTransaction, steps } of plans[extract]) {
      if (isTransaction) await client.query("BEGIN")
      for (const { keep, name, order, text } of steps) {
        const { rows } = await client.query<{ readonly id?: unknown }>({
          name,
          text,
          values: order.map((one) => values[one])
        })
        if (keep !== undefined) values[keep] = rows[0]?.id ?? values["job"]
      }
      if (isTransaction) await client.query("COMMIT")
    }
  }
  return async (
    { concurrency, extract, issuances }: {
      readonly concurrency: number
      readonly issuances: number
      readonly extract: Extract
    }
  ): Promise<Bout> => {
    const chosen = clients.slice(0, Math.min(concurrency, poolMax))
    const batches = Array.from(
      { length: Math.ceil(issuances / issuancesPerBatch) },
      () => makeBatch("postgres", material, extract)
    )
    const queue = [...batches]
    const cpu = process.cpuUsage()
    // Batches follow one another, so that the nonces of a batch are stored before they are used.
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      const { batch, nonces, now } = next
      await chosen[0]?.query({ name: "nonces", text: insertNonces.postgres, values: [now, nonces] })
      const left = [...batch]
      await Promise.all(chosen.map(async (client) => {
        for (let values = left.pop(); values !== undefined; values = left.pop()) await act(extract, client, values)
      }))
    }
    const { system, user } = process.cpuUsage(cpu)
    const issued = batches.length * issuancesPerBatch
    return { issuances: issued, microseconds: (user + system) / issued }
  }
}

let measureCryptography: ((millis: number) => Cryptography) | undefined
let onSqlite: ReturnType<typeof measureSqlite> | undefined
let onPostgres: Awaited<ReturnType<typeof openPostgres>> | undefined
let material: Material | undefined

const known = <A>(value: A | undefined): A => {
  if (value === undefined) throw new Error("the floor is not laid")
  return value
}

/** The functions that the measuring process offers to the bench. */
export const floor = {
  /** Takes the input from an issuance of a server whose CA is in `caDirectory`. */
  lay: async (
    parameter: { readonly exchanges: ReadonlyArray<Exchange>; readonly caDirectory: string }
  ): Promise<void> => {
    material = materialOf(parameter.exchanges)
    measureCryptography = await makeCryptography(material, parameter.caDirectory)
  },
  cryptography: (millis: number): Cryptography => known(measureCryptography)(millis),
  /** Opens a database that has the schema and no rows. */
  openSqlite: ({ file, synchronous }: { readonly file: string; readonly synchronous: string }): void => {
    onSqlite = measureSqlite(known(material), file, synchronous)
  },
  sqlite: (parameter: { readonly millis: number; readonly extract: Extract }): number => known(onSqlite)(parameter),
  openPostgres: async (url: string): Promise<void> => {
    onPostgres = await openPostgres(known(material), url)
  },
  postgres: (
    parameter: { readonly concurrency: number; readonly issuances: number; readonly extract: Extract }
  ): Promise<Bout> => known(onPostgres)(parameter)
}

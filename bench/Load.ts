import type { KeyObject } from "node:crypto"
import { createPrivateKey, generateKeyPairSync, sign } from "node:crypto"
import { setTimeout as delay } from "node:timers/promises"
import { makeCsr } from "../test/support/Csr.ts"
import type { Answer, Target } from "./Wire.ts"
import { Connection, field, targetOf } from "./Wire.ts"

/*
 * The load generator: whole issuances over connections that stay open, every one with a new account. Keys, CSRs and
 * names are made ahead, so that in the measured window it signs, writes and reads, and does nothing else.
 */

/** The requests of one issuance, in order. */
export const kinds = ["newAccount", "newOrder", "authz", "challenge", "finalize", "order", "certificate"] as const
export type Kind = (typeof kinds)[number]

/** One request with its answer, as they went over the wire. */
export interface Exchange {
  readonly kind: Kind
  readonly request: string
  readonly requestBody: string
  readonly answer: Answer
}

/** What one issuance is made with. */
interface Credentials {
  readonly key: KeyObject
  readonly jwk: string
  readonly name: string
  readonly csr: string
}

const encode = (text: string): string => Buffer.from(text).toString("base64url")

/**
 * A key pair, encoded and read back. Node 20 deadlocks when it exports a generated KeyObject while the garbage
 * collector takes the job that generated it: both want the lock of the one key.
 */
const p256 = () => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", {
    namedCurve: "P-256",
    publicKeyEncoding: { format: "der", type: "spki" },
    privateKeyEncoding: { format: "der", type: "pkcs8" }
  })
  return {
    key: createPrivateKey({ key: privateKey, format: "der", type: "pkcs8" }),
    x: publicKey.toString("base64url", publicKey.length - 64, publicKey.length - 32),
    y: publicKey.toString("base64url", publicKey.length - 32)
  }
}

let serial = 0
const run = Date.now().toString(36)

const makeCredentials = (): Credentials => {
  const { key, x, y } = p256()
  const name = `h${++serial}-${run}.bench.example.org`
  const { csr } = makeCsr({ names: [name], key: p256().key })
  return {
    key,
    jwk: `{"kty":"EC","crv":"P-256","x":"${x}","y":"${y}"}`,
    name,
    csr: csr.toString("base64url")
  }
}

const pool: Array<Credentials> = []
let madeInWindow = 0

const takeCredentials = (): Credentials => {
  const ready = pool.pop()
  if (ready !== undefined) return ready
  madeInWindow++
  return makeCredentials()
}

interface Directory {
  readonly newNonce: string
  readonly newAccount: string
  readonly newOrder: string
}

interface Order {
  readonly status: string
  readonly authorizations: ReadonlyArray<string>
  readonly finalize: string
  readonly certificate?: string
}

interface Challenge {
  readonly type: string
  readonly url: string
  readonly status: string
}

/** The counts of events in a window. */
interface Counts {
  issuances: number
  requests: number
  polls: number
  retries: number
}

const termsAgreed = encode(`{"termsOfServiceAgreed":true}`)
const emptyObject = encode("{}")
const pollDelays = [0, 1, 2, 3, 5]
const patienceMs = 90_000

/** The milliseconds of an answer's Retry-After. */
const retryAfterOf = (answer: Answer): number => Number(field(answer.head, "retry-after") ?? 0) * 1000

const expect = (status: number, what: string, answer: Answer): Answer => {
  if (answer.status !== status) throw new Error(`${what}: ${answer.status} ${answer.body.slice(0, 500)}`)
  return answer
}

const isProblem = (answer: Answer, type: string): boolean => answer.body.includes(`urn:ietf:params:acme:error:${type}"`)

/** One client: a connection, the last nonce it was given, and the account of the issuance under way. */
class Client {
  readonly latencies: { readonly [K in Kind]: Array<number> } = {
    newAccount: [],
    newOrder: [],
    authz: [],
    challenge: [],
    finalize: [],
    order: [],
    certificate: []
  }
  readonly counts: Counts = { issuances: 0, requests: 0, polls: 0, retries: 0 }
  /** Milliseconds from finalize to the answer that names the certificate. */
  readonly waits: Array<number> = []
  /** Milliseconds of whole issuances. */
  readonly durations: Array<number> = []
  /** Exchanges are recorded here while it is set. */
  record: Array<Exchange> | undefined
  /** Waits at least Retry-After between polls. */
  isPatient = false

  private readonly connection: Connection
  private readonly host: string
  private readonly directory: Directory
  private nonce = ""
  private signer = ""
  private key: KeyObject | undefined

  constructor(target: Target, directory: Directory) {
    this.connection = new Connection(target)
    this.host = `${target.host}:${target.port}`
    this.directory = directory
  }

  async begin(): Promise<void> {
    await this.connection.open()
    if (this.nonce !== "") return
    const path = new URL(this.directory.newNonce).pathname
    const answer = await this.connection.send(`HEAD ${path} HTTP/1.1\r\nhost: ${this.host}\r\n\r\n`, true)
    this.nonce = field(answer.head, "replay-nonce") ?? ""
  }

  reset(): void {
    Object.assign(this.counts, { issuances: 0, requests: 0, polls: 0, retries: 0 })
    for (const kind of kinds) this.latencies[kind].length = 0
    this.waits.length = 0
    this.durations.length = 0
  }

  close(): void {
    this.connection.close()
  }

  private async post(kind: Kind, url: string, payload: string): Promise<Answer> {
    const { host } = this
    const path = url.slice(url.indexOf("/", 8))
    for (;;) {
      const header = encode(`{"alg":"ES256",${this.signer},"nonce":"${this.nonce}","url":"${url}"}`)
      const key = this.key as KeyObject
      const signature = sign("sha256", Buffer.from(`${header}.${payload}`, "latin1"), {
        key,
        dsaEncoding: "ieee-p1363"
      })
      const body = `{"protected":"${header}","payload":"${payload}","signature":"${signature.toString("base64url")}"}`
      const request = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\nuser-agent: acme-svc-bench\r\n`
        + `content-type: application/jose+json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
      await this.connection.open()
      const begun = performance.now()
      const answer = await this.connection.send(request)
      this.latencies[kind].push(performance.now() - begun)
      this.counts.requests++
      this.record?.push({ kind, request, requestBody: body, answer })
      const fresh = field(answer.head, "replay-nonce")
      if (fresh !== undefined) this.nonce = fresh
      if (answer.status !== 400 || !isProblem(answer, "badNonce") || this.counts.retries++ > 1000) return answer
    }
  }

  /** A whole issuance: from a new account to the chain. */
  async issue(): Promise<void> {
    const { csr, jwk, key, name } = takeCredentials()
    const startedAt = performance.now()
    this.key = key
    this.signer = `"jwk":${jwk}`
    const account = expect(201, "newAccount", await this.post("newAccount", this.directory.newAccount, termsAgreed))
    this.signer = `"kid":"${field(account.head, "location") ?? ""}"`
    const wanted = encode(`{"identifiers":[{"type":"dns","value":"${name}"}]}`)
    const placed = expect(201, "newOrder", await this.post("newOrder", this.directory.newOrder, wanted))
    const orderUrl = field(placed.head, "location") ?? ""
    const order = JSON.parse(placed.body) as Order
    const authz = expect(200, "authz", await this.post("authz", order.authorizations[0] ?? "", ""))
    const { challenges } = JSON.parse(authz.body) as { readonly challenges: ReadonlyArray<Challenge> }
    const challenge = challenges.find(({ type }) => type === "http-01")
    if (challenge === undefined) throw new Error(`no http-01 in ${authz.body}`)
    const triggered = expect(200, "challenge", await this.post("challenge", challenge.url, emptyObject))
    // A server that validates later is polled as early as allowed: only a retry costs it a request.
    if ((JSON.parse(triggered.body) as Challenge).status !== "valid") await delay(1)
    const begun = performance.now()
    const certificateUrl = await this.await(orderUrl, await this.finalize(order.finalize, csr))
    this.waits.push(performance.now() - begun)
    expect(200, "certificate", await this.post("certificate", certificateUrl, ""))
    this.durations.push(performance.now() - startedAt)
    this.counts.issuances++
  }

  private async finalize(url: string, csr: string): Promise<Answer> {
    const payload = encode(`{"csr":"${csr}"}`)
    for (let attempt = 0;; attempt++) {
      const answer = await this.post("finalize", url, payload)
      if (answer.status === 200) return answer
      if (attempt === 1000 || !isProblem(answer, "orderNotReady")) expect(200, "finalize", answer)
      this.counts.retries++
      await delay(1)
    }
  }

  /**
   * Polls at once, then after one, two, three and then every five milliseconds; a patient client polls as Retry-After
   * says.
   */
  private async await(orderUrl: string, finalized: Answer): Promise<string> {
    let last = finalized
    const end = performance.now() + patienceMs
    for (let poll = 0;; poll++) {
      const pause = this.isPatient ? retryAfterOf(last) : pollDelays[Math.min(poll, pollDelays.length - 1)] ?? 0
      if (pause > 0) await delay(pause)
      last = expect(200, "order", await this.post("order", orderUrl, ""))
      const order = JSON.parse(last.body) as Order
      this.counts.polls++
      if (order.certificate !== undefined) return order.certificate
      if (order.status === "invalid" || performance.now() > end) {
        throw new Error(`no certificate: ${JSON.stringify(order)}`)
      }
    }
  }
}

/** Latencies of one kind of request, in milliseconds. */
export interface Percentiles {
  readonly count: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** Percentiles of what was measured. */
export const percentilesOf = (values: ReadonlyArray<number>): Percentiles => {
  const sorted = Float64Array.from(values).sort()
  const at = (fraction: number) => sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * fraction) - 1)] ?? 0
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

/** The length of a window: this many issuances, or this many seconds. */
export interface Extent {
  readonly issuances?: number
  readonly seconds?: number
}

/** The result of a window, as its clients saw it. */
export interface Window extends Readonly<Counts> {
  readonly elapsedMs: number
  readonly latencies: { readonly [K in Kind]: Percentiles }
  readonly everyRequest: Percentiles
  /** CPU of the load generator itself. */
  readonly clientCpuMs: number
  /** Keys that were made within the window, because the pool was empty. */
  readonly madeInWindow: number
}

let target: Target | undefined
let directory: Directory | undefined
let clients: Array<Client> = []

const ready = async (count: number): Promise<ReadonlyArray<Client>> => {
  if (target === undefined || directory === undefined) throw new Error("no server to turn to")
  while (clients.length < count) clients.push(new Client(target, directory))
  const chosen = clients.slice(0, count)
  await Promise.all(chosen.map((client) => client.begin()))
  return chosen
}

/** The functions the load process offers to the bench. */
export const load = {
  /** Switches to another server. */
  target: async (directoryUrl: string): Promise<void> => {
    for (const client of clients) client.close()
    clients = []
    target = targetOf(directoryUrl)
    const connection = new Connection(target)
    await connection.open()
    const { pathname } = new URL(directoryUrl)
    const answer = await connection.send(`GET ${pathname} HTTP/1.1\r\nhost: ${target.host}:${target.port}\r\n\r\n`)
    connection.close()
    directory = JSON.parse(expect(200, "directory", answer).body) as Directory
  },

  /** Makes credentials for so many issuances ahead. */
  prepare: (count: number): void => {
    while (pool.length < count) pool.push(makeCredentials())
  },

  /** Opens the connections of a window before it begins. */
  connect: async (concurrency: number): Promise<void> => void await ready(concurrency),

  /** One issuance, whose exchanges are kept. */
  sample: async (): Promise<ReadonlyArray<Exchange>> => {
    const [client] = await ready(1)
    if (client === undefined) throw new Error("no client")
    const record: Array<Exchange> = []
    client.record = record
    await client.issue()
    client.record = undefined
    return record
  },

  /** Issues from `concurrency` clients at once; each finishes its current issuance. Patient ones heed Retry-After. */
  run: async (
    { concurrency, isPatient = false, issuances, seconds }: Extent & {
      readonly concurrency: number
      readonly isPatient?: boolean
    }
  ): Promise<Window> => {
    const chosen = await ready(concurrency)
    for (const client of chosen) {
      client.reset()
      client.isPatient = isPatient
    }
    madeInWindow = 0
    let left = issuances ?? Number.POSITIVE_INFINITY
    const cpu = process.cpuUsage()
    const begun = performance.now()
    const end = begun + (seconds ?? Number.POSITIVE_INFINITY) * 1000
    await Promise.all(chosen.map(async (client) => {
      while (left-- > 0 && performance.now() < end) await client.issue()
    }))
    const elapsedMs = performance.now() - begun
    const { system, user } = process.cpuUsage(cpu)
    const sum = (of: keyof Counts) => chosen.reduce((total, { counts }) => total + counts[of], 0)
    const latenciesOf = (kind: Kind) => chosen.flatMap(({ latencies }) => latencies[kind])
    return {
      issuances: sum("issuances"),
      requests: sum("requests"),
      polls: sum("polls"),
      retries: sum("retries"),
      elapsedMs,
      latencies: Object.fromEntries(
        kinds.map((kind) => [kind, percentilesOf(latenciesOf(kind))])
      ) as Window["latencies"],
      everyRequest: percentilesOf(kinds.flatMap(latenciesOf)),
      clientCpuMs: (user + system) / 1000,
      madeInWindow
    }
  },

  /** Milliseconds from finalize to the answer that names the certificate, of each issuance of the last window. */
  waits: (): ReadonlyArray<number> => clients.flatMap(({ waits }) => waits),

  /** Milliseconds of each issuance of the last window, from newAccount to the chain. */
  durations: (): ReadonlyArray<number> => clients.flatMap(({ durations }) => durations),

  /** Sends the requests of a recorded issuance repeatedly to a server with recorded answers. */
  replay: async (parameter: {
    readonly port: number
    readonly requests: ReadonlyArray<string>
    readonly concurrency: number
    readonly seconds: number
  }): Promise<{ readonly issuances: number }> => {
    const { concurrency, port, requests, seconds } = parameter
    const end = performance.now() + seconds * 1000
    let rounds = 0
    await Promise.all(Array.from({ length: concurrency }, async () => {
      const connection = new Connection({ host: "127.0.0.1", port, secure: false })
      while (performance.now() < end) {
        for (const request of requests) {
          await connection.open()
          await connection.send(request)
        }
        rounds++
      }
      connection.close()
    }))
    return { issuances: rounds }
  }
}

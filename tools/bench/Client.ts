import type { KeyObject } from "node:crypto"
import { createHash, createHmac, createPrivateKey, generateKeyPairSync, sign } from "node:crypto"
import { setTimeout as delay } from "node:timers/promises"
import { makeCsr } from "../../test/support/Csr.ts"
import type { Binding } from "./PeersFile.ts"
import type { Proof } from "./Proof.ts"
import type { Answer, Target } from "./Wire.ts"
import { Connection, field } from "./Wire.ts"

/*
 * A client of the load generator. Keys, CSRs and names are made in advance, so that the client only signs, writes and
 * reads while the bench measures.
 */

/** The requests of one issuance, in order. */
export const kinds = ["newAccount", "newOrder", "authz", "challenge", "finalize", "order", "certificate"] as const
export type Kind = (typeof kinds)[number]

/** One request with its answer, as sent over the wire. */
export interface Exchange {
  readonly kind: Kind
  readonly request: string
  readonly requestBody: string
  readonly answer: Answer
}

/** What the clients repeat in a window: whole issuances, or one kind of request. */
export type Act = "issue" | "newAccount" | "newNonce" | "directory"

/** The credentials of one issuance. */
interface Credentials {
  readonly key: KeyObject
  readonly jwk: string
  readonly thumbprint: string
  readonly name: string
  readonly csr: string
}

const encode = (text: string): string => Buffer.from(text).toString("base64url")

/**
 * Makes a key pair, encodes it and reads it back. Node 20 deadlocks if it exports a generated KeyObject while the
 * garbage collector frees the job that generated the key, because both need the lock of that key.
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
    // The thumbprint of RFC 7638, for which members are sorted by name.
    thumbprint: createHash("sha256").update(`{"crv":"P-256","kty":"EC","x":"${x}","y":"${y}"}`).digest("base64url"),
    name,
    csr: csr.toString("base64url")
  }
}

const pool: Array<Credentials> = []
let made = 0

/** Makes credentials for `count` issuances in advance. */
export const prepare = (count: number): void => {
  while (pool.length < count) pool.push(makeCredentials())
}

/** Returns how many credentials were made only when a client needed them, because none were left. */
export const madeLate = (): number => made

const takeCredentials = (): Credentials => {
  const ready = pool.pop()
  if (ready !== undefined) return ready
  made++
  return makeCredentials()
}

/** The URLs in an ACME directory that a client needs. */
export interface Directory {
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
  readonly token: string
}

interface Authorization {
  readonly status: string
  readonly challenges: ReadonlyArray<Challenge>
}

/** What clients count in a window. */
export interface Counts {
  /** Whole issuances, or the requests of a window that has only one kind of request. */
  issuances: number
  requests: number
  polls: number
  retries: number
  refused: number
}

const emptyObject = encode("{}")
const pollDelays = [0, 1, 2, 3, 5]
const patienceMs = 90_000
const tokenPatienceMs = 10_000

/** Waits until the promise resolves. Fails with the message if this takes longer than a client waits. */
const inTime = async (promise: Promise<void>, message: string): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${message} in ${tokenPatienceMs / 1000} s`)), tokenPatienceMs)
  })
  try {
    await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Returns the Retry-After of an answer in milliseconds. */
const retryAfterOf = (answer: Answer): number => Number(field(answer.head, "retry-after") ?? 0) * 1000

/** The server answered, but not with what was requested. */
export class Refused extends Error {}

/** Returns the answer. Fails if its status is not the expected one. */
export const expect = (status: number, what: string, answer: Answer): Answer => {
  if (answer.status !== status) throw new Refused(`${what}: ${answer.status} ${answer.body.slice(0, 500)}`)
  return answer
}

/** Returns the payload that registers the account with this key, by external account binding if there is a credential. */
const registrationOf = (jwk: string, url: string, binding: Binding | undefined): string => {
  if (binding === undefined) return encode(`{"termsOfServiceAgreed":true}`)
  const header = encode(JSON.stringify({ alg: "HS256", kid: binding.kid, url }))
  const payload = encode(jwk)
  const signature = createHmac("sha256", Buffer.from(binding.key, "base64url")).update(`${header}.${payload}`)
    .digest("base64url")
  return encode(JSON.stringify({
    termsOfServiceAgreed: true,
    externalAccountBinding: { protected: header, payload, signature }
  }))
}

const isProblem = (answer: Answer, type: string): boolean => answer.body.includes(`urn:ietf:params:acme:error:${type}"`)

/** Writes a request without a body. */
export const plainRequest = (method: "GET" | "HEAD", host: string, url: string): string =>
  `${method} ${new URL(url).pathname} HTTP/1.1\r\nhost: ${host}\r\nuser-agent: acme-svc-bench\r\n\r\n`

/** One client: a connection, its last nonce, and the account of the issuance in progress. */
export class Client {
  readonly latencies: { readonly [K in Kind]: Array<number> } = {
    newAccount: [],
    newOrder: [],
    authz: [],
    challenge: [],
    finalize: [],
    order: [],
    certificate: []
  }
  readonly counts: Counts = { issuances: 0, requests: 0, polls: 0, retries: 0, refused: 0 }
  /** Milliseconds from finalize to the answer that names the certificate. */
  readonly waits: Array<number> = []
  /** How long whole issuances took in milliseconds, and how long the same issuances took from newOrder on. */
  readonly durations: Array<number> = []
  readonly ordered: Array<number> = []
  /** The recorded exchanges. If undefined, nothing is recorded. */
  record: Array<Exchange> | undefined
  /** Whether the client waits at least Retry-After between polls. */
  isPatient = false
  /** The servers with which the client proves control of names. If undefined, the service bypasses validation. */
  proof: Proof | undefined
  /** The credential that binds the accounts, if the profile requires one. */
  binding: Binding | undefined

  private readonly connection: Connection
  private readonly host: string
  private readonly directory: Directory
  private isClosed = false
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
    Object.assign(this.counts, { issuances: 0, requests: 0, polls: 0, retries: 0, refused: 0 })
    for (const kind of kinds) this.latencies[kind].length = 0
    this.waits.length = 0
    this.durations.length = 0
    this.ordered.length = 0
  }

  /** Closes the connection for good. What the client is doing fails. */
  close(): void {
    this.isClosed = true
    this.connection.close()
  }

  /** Sends a request without a body. */
  private async ask(method: "GET" | "HEAD", url: string): Promise<Answer> {
    await this.connection.open()
    const answer = await this.connection.send(plainRequest(method, this.host, url), method === "HEAD")
    this.counts.requests++
    this.counts.issuances++
    return answer
  }

  async newNonce(): Promise<void> {
    expect(200, "newNonce", await this.ask("HEAD", this.directory.newNonce))
  }

  async directoryOf(url: string): Promise<void> {
    expect(200, "directory", await this.ask("GET", url))
  }

  /** Makes an account, without an order. */
  async register(): Promise<void> {
    const { jwk, key } = takeCredentials()
    this.key = key
    this.signer = `"jwk":${jwk}`
    await this.makeAccount(jwk)
    this.counts.issuances++
  }

  private async makeAccount(jwk: string): Promise<Answer> {
    const { newAccount } = this.directory
    return expect(
      201,
      "newAccount",
      await this.post("newAccount", newAccount, registrationOf(jwk, newAccount, this.binding))
    )
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
      if (this.isClosed) throw new Error("the load has turned to another server")
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

  /** Makes a whole issuance, from a new account to the chain. */
  async issue(): Promise<void> {
    const { csr, jwk, key, name, thumbprint } = takeCredentials()
    const startedAt = performance.now()
    this.key = key
    this.signer = `"jwk":${jwk}`
    const account = await this.makeAccount(jwk)
    this.signer = `"kid":"${field(account.head, "location") ?? ""}"`
    const orderedAt = performance.now()
    const wanted = encode(`{"identifiers":[{"type":"dns","value":"${name}"}]}`)
    const placed = expect(201, "newOrder", await this.post("newOrder", this.directory.newOrder, wanted))
    const orderUrl = field(placed.head, "location") ?? ""
    const order = JSON.parse(placed.body) as Order
    const [authzUrl = ""] = order.authorizations
    const authz = expect(200, "authz", await this.post("authz", authzUrl, ""))
    if ((JSON.parse(authz.body) as Authorization).status !== "valid") {
      await this.prove(authzUrl, authz, { name, thumbprint })
    }
    const begun = performance.now()
    const certificateUrl = await this.await(orderUrl, await this.finalize(order.finalize, csr))
    this.waits.push(performance.now() - begun)
    expect(200, "certificate", await this.post("certificate", certificateUrl, ""))
    this.durations.push(performance.now() - startedAt)
    this.ordered.push(performance.now() - orderedAt)
    this.counts.issuances++
  }

  /** Answers the http-01 challenge of an authorization. */
  private async prove(
    authzUrl: string,
    authz: Answer,
    { name, thumbprint }: Pick<Credentials, "name" | "thumbprint">
  ): Promise<void> {
    const { challenges } = JSON.parse(authz.body) as Authorization
    const challenge = challenges.find(({ type }) => type === "http-01")
    if (challenge === undefined) throw new Error(`no http-01 in ${authz.body}`)
    const looked = this.proof?.offer(name, challenge.token, `${challenge.token}.${thumbprint}`)
    const triggered = expect(200, "challenge", await this.post("challenge", challenge.url, emptyObject))
    // A server may hold its answer until the validation has ended.
    const { status } = JSON.parse(triggered.body) as Challenge
    if (status === "invalid") throw new Refused(`the challenge failed: ${triggered.body.slice(0, 500)}`)
    if (status !== "valid" && looked !== undefined) {
      await inTime(looked, `the server did not request the token of ${name}`)
      await this.untilValid(authzUrl, triggered)
    } else if (status !== "valid") {
      // A server that validates later is polled as early as is allowed. A poll that is too early costs only one retry.
      await delay(1)
    }
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
   * Polls at once, then after one, two and three milliseconds, and then every five milliseconds. A patient client waits
   * for Retry-After before each poll.
   */
  private async poll<A>(
    kind: "authz" | "order",
    url: string,
    since: Answer,
    done: (polled: Order) => A | undefined
  ): Promise<A> {
    let last = since
    const end = performance.now() + patienceMs
    for (let poll = 0;; poll++) {
      const pause = this.isPatient ? retryAfterOf(last) : pollDelays[Math.min(poll, pollDelays.length - 1)] ?? 0
      if (pause > 0) await delay(pause)
      last = expect(200, kind, await this.post(kind, url, ""))
      const polled = JSON.parse(last.body) as Order
      this.counts.polls++
      const found = done(polled)
      if (found !== undefined) return found
      if (polled.status === "invalid") throw new Refused(`no certificate: ${last.body.slice(0, 500)}`)
      if (performance.now() > end) throw new Error(`no certificate in time: ${last.body.slice(0, 500)}`)
    }
  }

  private async await(orderUrl: string, finalized: Answer): Promise<string> {
    return (JSON.parse(finalized.body) as Order).certificate ??
      await this.poll("order", orderUrl, finalized, ({ certificate }) => certificate)
  }

  /** Polls the authorization and not the order, as most clients do. */
  private async untilValid(authzUrl: string, triggered: Answer): Promise<void> {
    await this.poll("authz", authzUrl, triggered, ({ status }) => status === "valid" ? status : undefined)
  }
}

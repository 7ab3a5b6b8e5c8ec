import type { JWK } from "jose"
import { base64url, calculateJwkThumbprint, exportJWK } from "jose"
import type { KeyObject } from "node:crypto"
import { createPublicKey, sign } from "node:crypto"
import { setTimeout as delay } from "node:timers/promises"
import { makeCsr } from "./Csr.ts"
import type { HttpAnswer, HttpClient } from "./Http.ts"
import { makeHttpClient } from "./Http.ts"
import { newEcKey, newRsaKey } from "./Keys.ts"
import { patienceMs } from "./Patience.ts"

/*
 * An ACME client for tests, which shares no code with the server and can send any bytes. By itself, the client repeats
 * nothing and tolerates no fault.
 */

/** A key that signs requests. */
export interface AcmeKey {
  readonly privateKey: KeyObject
  readonly jwk: JWK
  readonly alg: keyof typeof digests
  readonly thumbprint: string
}

const digests = {
  "ES256": "sha256",
  "RS256": "sha256",
  "ES384": "sha384",
  "ES512": "sha512",
  "EdDSA": null,
  "ML-DSA-44": null,
  "ML-DSA-65": null,
  "ML-DSA-87": null
} as const

/** Returns an {@link AcmeKey} from a private key: P-256 signs with ES256, RSA with RS256. */
export const acmeKeyFrom = async (privateKey: KeyObject): Promise<AcmeKey> => {
  const jwk = await exportJWK(createPublicKey(privateKey))
  const alg = privateKey.asymmetricKeyType === "rsa" ? "RS256" : "ES256"
  return { privateKey, jwk, alg, thumbprint: await calculateJwkThumbprint(jwk) }
}

/** Returns a new key, of type P-256 unless RSA is requested. */
export const makeAcmeKey = (type: "ec" | "rsa" = "ec"): Promise<AcmeKey> =>
  acmeKeyFrom(
    type === "ec"
      ? newEcKey()
      : newRsaKey()
  )

/** The members of a flattened JWS. */
export interface FlattenedJws {
  readonly protected: string
  readonly payload: string
  readonly signature: string
}

/** Signs the header and the payload as they are. */
export const signJws = (
  key: AcmeKey,
  protectedHeader: string | Uint8Array,
  payload: string | Uint8Array
): FlattenedJws => {
  const encodedHeader = base64url.encode(protectedHeader)
  const encodedPayload = base64url.encode(payload)
  const input = Buffer.from(`${encodedHeader}.${encodedPayload}`)
  const signature = sign(digests[key.alg], input, { key: key.privateKey, dsaEncoding: "ieee-p1363" })
  return { protected: encodedHeader, payload: encodedPayload, signature: base64url.encode(signature) }
}

/** How a request differs from a correct one. */
export interface Deviation {
  /** The nonce to use. `null` leaves out the member. */
  readonly nonce?: string | null
  /** Members of the protected header to set. `undefined` removes a member. */
  readonly header?: Readonly<Record<string, unknown>>
  /** The text that replaces the serialised protected header. */
  readonly protectedText?: (members: Readonly<Record<string, unknown>>) => string | Uint8Array
  /** The text that replaces the serialised payload. */
  readonly payloadText?: string | Uint8Array
  /** Changes the finished JWS. The result is serialised as JSON. */
  readonly jws?: (good: FlattenedJws) => unknown
  /** Changes the finished body. */
  readonly body?: (good: string) => string | Uint8Array | ReadonlyArray<Uint8Array>
  /** The media type. `null` leaves out the header. */
  readonly contentType?: string | null
  /** HTTP headers to add. */
  readonly headers?: Readonly<Record<string, string>>
  /** A key that signs instead of the session's. */
  readonly key?: AcmeKey
  /** How the request identifies its key. The default is `kid` once the session has an account. */
  readonly identify?: "jwk" | "kid" | "both" | "neither"
}

/** A problem document as it was received. */
export interface ProblemBody {
  readonly type?: string
  readonly status?: number
  readonly detail?: string
  readonly identifier?: { readonly type: string; readonly value: string }
  readonly instance?: string
  readonly subproblems?: ReadonlyArray<ProblemBody>
  readonly algorithms?: ReadonlyArray<string>
}

export interface OrderBody {
  readonly status: "pending" | "ready" | "processing" | "valid" | "invalid"
  readonly expires: string
  readonly notBefore?: string
  readonly notAfter?: string
  readonly identifiers: ReadonlyArray<{ readonly type: string; readonly value: string }>
  readonly authorizations: ReadonlyArray<string>
  readonly finalize: string
  readonly certificate?: string
  readonly error?: ProblemBody
}

export interface ChallengeBody {
  readonly type: string
  readonly url: string
  readonly status: "pending" | "processing" | "valid" | "invalid"
  readonly token: string
  readonly validated?: string
  readonly error?: ProblemBody
}

export interface AuthorizationBody {
  readonly status: "pending" | "valid" | "invalid" | "deactivated" | "expired" | "revoked"
  readonly identifier: { readonly type: string; readonly value: string }
  readonly challenges: ReadonlyArray<ChallengeBody>
  readonly wildcard?: boolean
}

export interface DirectoryBody {
  readonly newNonce: string
  readonly newAccount: string
  readonly newOrder: string
  readonly revokeCert?: string
  readonly keyChange?: string
  readonly renewalInfo?: string
  readonly meta?: Readonly<Record<string, unknown>>
}

/** An order and its URL. */
export interface PlacedOrder {
  readonly url: string
  readonly body: OrderBody
}

/** A finished issuance. */
export interface Issued {
  readonly order: PlacedOrder
  readonly certificateUrl: string
  readonly chain: string
  readonly key: KeyObject
}

const problemPrefix = "urn:ietf:params:acme:error:"

/**
 * Returns the problem type of an answer without the URN prefix, or `undefined` if the answer is not an ACME problem.
 */
export const problemType = (answer: HttpAnswer): string | undefined => {
  const type = (answer.json as ProblemBody | undefined)?.type
  return type?.startsWith(problemPrefix) === true ? type.slice(problemPrefix.length) : undefined
}

/** An answer other than the one that a function needs. */
export class UnexpectedAnswer extends Error {
  readonly answer: HttpAnswer

  constructor(what: string, answer: HttpAnswer) {
    super(`${what}: ${answer.status} ${answer.text.slice(0, 500)}`)
    this.name = "UnexpectedAnswer"
    this.answer = answer
  }
}

const header = (answer: HttpAnswer, name: string): string => {
  const value = answer.headers[name]
  if (typeof value !== "string") throw new UnexpectedAnswer(`no ${name} header`, answer)
  return value
}

/** How a session behaves, apart from the requests that it is told to send. */
export interface SessionOptions {
  readonly key?: AcmeKey
  /** A client that many sessions may share. {@link AcmeSession.close} then leaves it open. */
  readonly http?: HttpClient
  /**
   * For how many milliseconds a request is repeated after a dead connection, 429, 5xx or badNonce, as real clients do.
   * With 0, the default, the first answer counts.
   */
  readonly patienceMs?: number
  /** The pause between two polls, and between two repetitions. */
  readonly pollMs?: number
}

const transient = (answer: HttpAnswer): boolean =>
  answer.status === 429 || answer.status >= 500 || problemType(answer) === "badNonce"

/** A client with one key at one directory. */
export class AcmeSession {
  readonly key: AcmeKey
  readonly directoryUrl: string
  readonly directory: DirectoryBody
  /** The account URL, which {@link register} sets. It may also be set by hand. */
  kid: string | undefined

  private readonly http: HttpClient
  private readonly ownsHttp: boolean
  private readonly patienceMs: number
  private readonly pollMs: number
  private nonces: Array<string> = []

  private constructor(
    directoryUrl: string,
    directory: DirectoryBody,
    key: AcmeKey,
    http: HttpClient,
    options: SessionOptions
  ) {
    this.directoryUrl = directoryUrl
    this.directory = directory
    this.key = key
    this.http = http
    this.ownsHttp = options.http === undefined
    this.patienceMs = options.patienceMs ?? 0
    this.pollMs = options.pollMs ?? 25
  }

  /** Opens a session and reads the directory. The next step is {@link register}. */
  static async open(directoryUrl: string, options: SessionOptions = {}): Promise<AcmeSession> {
    const http = options.http ?? makeHttpClient()
    const answer = await http.send(directoryUrl)
    if (answer.status !== 200) throw new UnexpectedAnswer("directory", answer)
    const key = options.key ?? await makeAcmeKey()
    return new AcmeSession(directoryUrl, answer.json as DirectoryBody, key, http, options)
  }

  /** Returns a session with another key, the same directory and the same connections. */
  async another(key?: AcmeKey): Promise<AcmeSession> {
    const { http, patienceMs, pollMs } = this
    return new AcmeSession(this.directoryUrl, this.directory, key ?? await makeAcmeKey(), http, {
      http,
      patienceMs,
      pollMs
    })
  }

  close(): void {
    if (this.ownsHttp) this.http.close()
  }

  /** Returns an unused nonce, which is the one from the last answer or else one from newNonce. */
  async nonce(): Promise<string> {
    const kept = this.nonces.pop()
    if (kept !== undefined) return kept
    const answer = await this.http.send(this.directory.newNonce, { method: "HEAD" })
    return header(answer, "replay-nonce")
  }

  /** Sends an unsigned GET. */
  get(url: string): Promise<HttpAnswer> {
    return this.http.send(url)
  }

  /**
   * Returns the body of a signed request, before {@link Deviation.body} changes it. Without a payload, the request is a
   * POST-as-GET.
   */
  async sign(url: string, payload?: object, deviation: Deviation = {}): Promise<string> {
    const key = deviation.key ?? this.key
    const identify = deviation.identify ?? (this.kid === undefined ? "jwk" : "kid")
    const nonce = deviation.nonce === undefined ? await this.nonce() : deviation.nonce
    this.nonces = this.nonces.filter((kept) => kept !== nonce)
    const members: Record<string, unknown> = {
      alg: key.alg,
      ...identify === "jwk" || identify === "both" ? { jwk: key.jwk } : {},
      ...identify === "kid" || identify === "both" ? { kid: this.kid } : {},
      ...nonce === null ? {} : { nonce },
      url,
      ...deviation.header
    }
    const protectedText = deviation.protectedText?.(members) ?? JSON.stringify(members)
    const payloadText = deviation.payloadText ?? (payload === undefined ? "" : JSON.stringify(payload))
    const good = signJws(key, protectedText, payloadText)
    return JSON.stringify(deviation.jws === undefined ? good : deviation.jws(good))
  }

  /** Sends one signed request and returns any answer. */
  async postOnce(url: string, payload?: object, deviation: Deviation = {}): Promise<HttpAnswer> {
    const good = await this.sign(url, payload, deviation)
    const contentType = deviation.contentType === undefined ? "application/jose+json" : deviation.contentType
    const answer = await this.http.send(url, {
      method: "POST",
      headers: { ...contentType === null ? {} : { "content-type": contentType }, ...deviation.headers },
      body: deviation.body === undefined ? good : deviation.body(good)
    })
    const fresh = answer.headers["replay-nonce"]
    if (typeof fresh === "string") this.nonces.push(fresh)
    return answer
  }

  /**
   * Repeats {@link postOnce} while the session's patience lasts, and in any case once with another nonce, as every
   * client does (RFC 8555 section 6.5).
   */
  async post(url: string, payload?: object, deviation: Deviation = {}): Promise<HttpAnswer> {
    const deadline = Date.now() + this.patienceMs
    for (let hasOldNonce = deviation.nonce === undefined;;) {
      try {
        const answer = await this.postOnce(url, payload, deviation)
        const isRefusedNonce = hasOldNonce && problemType(answer) === "badNonce"
        hasOldNonce &&= !isRefusedNonce
        if (!isRefusedNonce && (!transient(answer) || Date.now() >= deadline)) return answer
      } catch (error) {
        if (Date.now() >= deadline) throw error
      }
      this.nonces = []
      await delay(this.pollMs)
    }
  }

  private async expect(statuses: ReadonlyArray<number>, url: string, payload?: object): Promise<HttpAnswer> {
    const answer = await this.post(url, payload)
    if (!statuses.includes(answer.status)) throw new UnexpectedAnswer(`POST ${url}`, answer)
    return answer
  }

  /** Creates or finds the account and remembers its URL. */
  async register(payload: object = { termsOfServiceAgreed: true }): Promise<string> {
    const answer = await this.expect([200, 201], this.directory.newAccount, payload)
    this.kid = header(answer, "location")
    return this.kid
  }

  /** Deactivates the session's account. */
  async deactivate(): Promise<HttpAnswer> {
    if (this.kid === undefined) throw new Error("the session has no account")
    return this.expect([200], this.kid, { status: "deactivated" })
  }

  /** Asks to replace the session's key. After a 200, requests need a session with the new key. */
  rollOver(next: AcmeKey): Promise<HttpAnswer> {
    const url = this.directory.keyChange ?? ""
    const header = JSON.stringify({ alg: next.alg, jwk: next.jwk, url })
    const inner = signJws(next, header, JSON.stringify({ account: this.kid, oldKey: this.key.jwk }))
    return this.post(url, inner)
  }

  async newOrder(names: ReadonlyArray<string>, more: object = {}): Promise<PlacedOrder> {
    const identifiers = names.map((value) => ({ type: "dns", value }))
    const answer = await this.expect([201], this.directory.newOrder, { identifiers, ...more })
    return { url: header(answer, "location"), body: answer.json as OrderBody }
  }

  async order(url: string): Promise<OrderBody> {
    return (await this.expect([200], url)).json as OrderBody
  }

  async authorization(url: string): Promise<AuthorizationBody> {
    return (await this.expect([200], url)).json as AuthorizationBody
  }

  /** Returns the body that http-01 serves for a token. */
  keyAuthorization(token: string): string {
    return `${token}.${this.key.thumbprint}`
  }

  async trigger(challengeUrl: string): Promise<ChallengeBody> {
    return (await this.expect([200], challengeUrl, {})).json as ChallengeBody
  }

  /** Reads until `done` returns true. Fails after `timeoutMs` milliseconds. */
  async poll<A>(read: () => Promise<A>, done: (value: A) => boolean, timeoutMs = patienceMs): Promise<A> {
    const deadline = Date.now() + timeoutMs
    for (;;) {
      const value = await read()
      if (done(value)) return value
      if (Date.now() >= deadline) throw new Error(`still not done after ${timeoutMs} ms: ${JSON.stringify(value)}`)
      await delay(this.pollMs)
    }
  }

  /** Waits until an order has one of the statuses in `until`. */
  awaitOrder(url: string, until: ReadonlyArray<OrderBody["status"]>, timeoutMs?: number): Promise<OrderBody> {
    return this.poll(() => this.order(url), ({ status }) => until.includes(status), timeoutMs)
  }

  /** Waits until an authorization is no longer pending. */
  awaitAuthorization(url: string, timeoutMs?: number): Promise<AuthorizationBody> {
    return this.poll(() => this.authorization(url), ({ status }) => status !== "pending", timeoutMs)
  }

  finalize(order: OrderBody, csr: Uint8Array): Promise<HttpAnswer> {
    return this.post(order.finalize, { csr: base64url.encode(csr) })
  }

  async download(certificateUrl: string): Promise<string> {
    return (await this.expect([200], certificateUrl)).text
  }

  /** Publishes and triggers the http-01 challenge of every pending authorization, and waits for all of them. */
  async authorize(order: OrderBody, tokens: Map<string, string>, timeoutMs?: number): Promise<void> {
    for (const url of order.authorizations) {
      const { challenges, status } = await this.authorization(url)
      const challenge = challenges.find(({ type }) => type === "http-01")
      if (status !== "pending" || challenge === undefined) continue
      tokens.set(challenge.token, this.keyAuthorization(challenge.token))
      await this.trigger(challenge.url)
    }
    for (const url of order.authorizations) {
      const settled = await this.awaitAuthorization(url, timeoutMs)
      if (settled.status !== "valid") throw new Error(`authorization not valid: ${JSON.stringify(settled)}`)
    }
  }

  /** Issues a certificate, from newOrder to the download of the chain. */
  async issue(
    names: ReadonlyArray<string>,
    tokens: Map<string, string>,
    options: { readonly key?: KeyObject; readonly more?: object } = {}
  ): Promise<Issued> {
    const placed = await this.newOrder(names, options.more)
    await this.authorize(placed.body, tokens)
    const { csr, key } = makeCsr(options.key === undefined ? { names } : { names, key: options.key })
    const finalized = await this.finalize(placed.body, csr)
    if (finalized.status !== 200) throw new UnexpectedAnswer("finalize", finalized)
    const body = await this.awaitOrder(placed.url, ["valid", "invalid"])
    if (body.certificate === undefined) throw new Error(`no certificate: ${JSON.stringify(body)}`)
    const chain = await this.download(body.certificate)
    return { order: { url: placed.url, body }, certificateUrl: body.certificate, chain, key }
  }
}

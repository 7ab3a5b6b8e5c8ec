import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import type { Subproblem } from "../../../domain/JobFailure.ts"
import type { Identifier } from "../../../domain/ProblemDocument.ts"
import { oneLine } from "../../../kernel/HiddenText.ts"
import type { WebAnswer } from "../../../kernel/net/Web.ts"
import { Web } from "../../../kernel/net/Web.ts"
import { emit } from "../../../kernel/telemetry/EventLog.ts"
import { currentMillis } from "../../../kernel/Time.ts"
import type { RequestKey } from "../../../pki/jose/RequestKey.ts"
import type { UpstreamFailed } from "./UpstreamFailed.ts"
import { UpstreamRefused, UpstreamUnavailable } from "./UpstreamFailed.ts"
import { upstreamUrl } from "./UpstreamUrl.ts"

/* The service as ACME client of an upstream CA (RFC 8555): signed requests, nonces, and which parts of answers to trust. */

/** An answer whose status is a success. */
export interface UpstreamAnswer {
  readonly status: number
  /** The body as a JSON object; `undefined` when it is not one. */
  readonly json: Members | undefined
  /** The body as JSON of any kind; `undefined` when it is none, because it was cut off on the way, for example. */
  readonly value: unknown
  readonly text: string
  /** The URL of the Location header, if it may be followed. */
  readonly location: string | undefined
  /** The URL of the next part of a list, from the Link header. */
  readonly next: string | undefined
  /** Seconds that the upstream asks the client to wait, for whatever reason; `undefined` without such a request. */
  readonly retryAfter: number | undefined
}

/** How one request is signed. */
export type SignedBy = "jwk" | { readonly kid: string }

/** The members of the directory that the relay uses. */
export interface Directory {
  readonly newNonce: string
  readonly newAccount: string
  readonly newOrder: string
  readonly revokeCert: string
  readonly termsOfService: string | undefined
}

const maxAnswerBytes = 1_048_576
/** Time limit of a request: nothing else ends a request to a silent upstream while the service starts. */
const answerMillis = 30_000
const nonceTries = 8
const noncesKept = 32
/** Milliseconds after which the directory is read again: an upstream may move. */
const directoryLife = 3_600_000
const longestText = 2000
const longestType = 100
const longestPart = 300

const parsed = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString("utf8"))
  } catch {
    return undefined
  }
}

type Members = { readonly [member: string]: unknown }

const objectOf = (value: unknown): Members | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value as Members : undefined

const textOf = (value: unknown): string | undefined => typeof value === "string" ? value : undefined

/** Remote text without the characters on which a terminal or a log would act. */
export const plain = (text: string): string => oneLine(text).slice(0, longestText)

const urn = /^urn:ietf:params:acme:error:/

const typeOf = (members: Members): string => plain(textOf(members["type"]) ?? "").replace(urn, "").slice(0, longestType)

const identifierOf = (members: Members): Identifier | undefined => {
  const { type = "dns", value } = objectOf(members["identifier"]) ?? {}
  return typeof type === "string" && typeof value === "string" ? { type: plain(type), value: plain(value) } : undefined
}

const mostSubproblems = 10

/** A problem document as a failure. In the detail, the identifier of each subproblem comes before its text. */
export const problemIn = (
  problem: unknown,
  status: number | undefined
): Pick<UpstreamRefused, "type" | "detail" | "identifier" | "subproblems"> => {
  const members = objectOf(problem) ?? {}
  const own = textOf(members["detail"]) ?? ""
  const parts = Array.isArray(members["subproblems"]) ? members["subproblems"] as ReadonlyArray<unknown> : []
  const subproblems = parts.slice(0, mostSubproblems).map((part): Subproblem => {
    const members = objectOf(part) ?? {}
    return {
      type: typeOf(members),
      detail: plain(textOf(members["detail"]) ?? "?").slice(0, longestPart),
      identifier: identifierOf(members) ?? { type: "dns", value: "?" }
    }
  })
  const more = subproblems.map(({ detail, identifier }) => `${identifier.value}: ${detail}`)
  return {
    type: typeOf(members),
    detail: plain([own === "" ? `status ${status ?? "?"}` : own, ...more].join("; ")),
    ...subproblems.length === 0 ? {} : { subproblems },
    identifier: identifierOf(members)
  }
}

/** Ten years, in seconds: nothing here lives longer, and a date can still be made of it. */
const longestWait = 315_360_000

/** RFC 9110 section 10.2.3, seconds or a date. */
const retryAfterOf = (text: string | undefined, now: number): number | undefined => {
  if (text === undefined) return undefined
  const seconds = /^-?\d+$/.test(text) ? Number(text) : (Date.parse(text) - now) / 1000
  return Number.isFinite(seconds) ? Math.min(Math.max(0, seconds), longestWait) : undefined
}

/** RFC 9457: by its media type, or by a type of RFC 8555 where the media type is another. */
const isProblem = (members: Members, mediaType = ""): boolean =>
  /^application\/problem\+json\s*(?:;|$)/i.test(mediaType) || urn.test(textOf(members["type"]) ?? "")

/** RFC 8288; node joins several fields with commas. */
const nextOf = (links: ReadonlyArray<string> | string | undefined): string | undefined =>
  /<([^<>]*)>\s*;\s*rel="?next"?(?:\s*[;,]|\s*$)/i.exec(typeof links === "string" ? links : links?.join(", ") ?? "")
    ?.[1]

/**
 * Makes the client of one upstream; it sends no request before one is needed. `key` is the key of the account. `profile` is
 * the profile for which the client was made, the first of those that share it.
 */
export const make = (directoryUrl: string, key: RequestKey, profile: string) =>
  Effect.gen(function*() {
    const web = yield* Web
    const base = new URL(directoryUrl)
    const nonces: Array<string> = []
    const known = yield* Ref.make<{ readonly directory: Directory; readonly at: number } | undefined>(undefined)

    const unavailable = (detail: string, status?: number, retryAfter?: number) =>
      new UpstreamUnavailable({ detail, status, retryAfter })
    const lie = (what: string) =>
      new UpstreamRefused({
        detail: `the upstream names ${what} that is not a trusted URL`,
        status: undefined,
        type: "untrusted"
      })

    /** A URL that the upstream has named, checked but unchanged, because it goes into signatures. */
    const checked = (text: unknown, what: string): Effect.Effect<string, UpstreamRefused> =>
      typeof text === "string" && upstreamUrl(text, base) !== undefined ? Effect.succeed(text) : lie(what)

    const waitIn = (answer: WebAnswer) =>
      Effect.map(currentMillis, (now) => retryAfterOf(answer.headers["retry-after"], now))

    const send = (method: string, url: string, body?: string): Effect.Effect<WebAnswer, UpstreamUnavailable> =>
      Effect.gen(function*() {
        const headers: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/jose+json" }
        const answer = yield* web.send({ method, url: new URL(url), headers, body, maxBytes: maxAnswerBytes }).pipe(
          Effect.mapError(({ detail, unsent = false }) =>
            new UpstreamUnavailable({ detail, status: undefined, unsent })
          ),
          Effect.timeoutOrElse({
            duration: answerMillis,
            orElse: () => Effect.fail(unavailable(`no answer within ${answerMillis} ms`))
          })
        )
        if (answer.truncated) {
          const detail = `answers with more than ${maxAnswerBytes} bytes`
          return yield* new UpstreamUnavailable({ detail, status: answer.status, isTooLong: true })
        }
        const nonce = answer.headers["replay-nonce"]
        if (typeof nonce === "string" && /^[\w-]{1,512}$/.test(nonce) && nonces.length < noncesKept) nonces.push(nonce)
        return answer
      })

    const readDirectory: Effect.Effect<Directory, UpstreamFailed> = Effect.gen(function*() {
      const answer = yield* send("GET", directoryUrl)
      const { status } = answer
      if (status !== 200) return yield* unavailable(`the directory answers ${status}`, status, yield* waitIn(answer))
      const members = objectOf(parsed(answer.body))
      if (members === undefined) return yield* unavailable("the directory is no JSON object", status)
      const meta = (members["meta"] ?? {}) as { readonly [member: string]: unknown }
      return {
        newNonce: yield* checked(members["newNonce"], "a newNonce"),
        newAccount: yield* checked(members["newAccount"], "a newAccount"),
        newOrder: yield* checked(members["newOrder"], "a newOrder"),
        revokeCert: yield* checked(members["revokeCert"], "a revokeCert"),
        termsOfService: textOf(meta["termsOfService"])
      }
    })

    const directory: Effect.Effect<Directory, UpstreamFailed> = Effect.gen(function*() {
      const now = yield* currentMillis
      const found = yield* Ref.get(known)
      if (found !== undefined && Math.abs(now - found.at) < directoryLife) return found.directory
      const directory = yield* readDirectory
      yield* Ref.set(known, { directory, at: now })
      return directory
    })

    const nonce: Effect.Effect<string, UpstreamFailed> = Effect.gen(function*() {
      const kept = nonces.pop()
      if (kept !== undefined) {
        return kept
      }
      const { newNonce } = yield* directory
      const answer = yield* send("HEAD", newNonce)
      const { status } = answer
      return nonces.pop() ??
        (yield* unavailable(`newNonce answers ${status} without a nonce`, status, yield* waitIn(answer)))
    })

    /** Marks a failure to get a nonce: without a nonce no request was sent. */
    const unsent = (error: UpstreamFailed): UpstreamFailed =>
      error._tag === "UpstreamRefused"
        ? error
        : new UpstreamUnavailable({
          detail: error.detail,
          status: error.status,
          retryAfter: error.retryAfter,
          unsent: true
        })

    /** Sends one signed request; an empty payload reads (POST-as-GET). If a nonce is refused, it tries again with another. */
    const post = (
      url: string,
      payload: object | "",
      by: SignedBy,
      tries = nonceTries
    ): Effect.Effect<UpstreamAnswer, UpstreamFailed> =>
      Effect.gen(function*() {
        const header = {
          nonce: yield* Effect.mapError(nonce, unsent),
          url,
          ...(by === "jwk" ? { jwk: key.jwk } : { kid: by.kid })
        }
        const signed = yield* key.sign(header, payload === "" ? "" : JSON.stringify(payload))
        const answer = yield* send("POST", url, JSON.stringify(signed))
        const { body, headers, status } = answer
        const value = parsed(body)
        const members = objectOf(value)
        const retryAfter = yield* waitIn(answer)
        if (status >= 200 && status < 300) {
          const location = headers.location
          return {
            status,
            json: members,
            value,
            text: body.toString("utf8"),
            next: nextOf(headers.link),
            location: location === undefined ? undefined : yield* checked(location, "a location"),
            retryAfter
          }
        }
        // Without a problem document the cause is unknown: a proxy on the way may have refused, or the body was lost.
        if (members === undefined || !isProblem(members, headers["content-type"])) {
          const says = status < 400
            ? `${status} instead of a success or a failure`
            : `${status} without a problem document`
          return yield* unavailable(`answers ${says}`, status, retryAfter)
        }
        const problem = problemIn(members, status)
        const { detail, type } = problem
        if (type === "badNonce" && tries > 1) {
          yield* emit("upstream_bad_nonce_retry", { target_host: base.host })
          return yield* post(url, payload, by, tries - 1)
        }
        const isPassing = status >= 500 || status === 429 || status === 408 || status < 400 ||
          type === "badNonce" || type === "rateLimited" || type === "serverInternal"
        return yield* isPassing
          ? new UpstreamUnavailable({ detail, status, retryAfter, type })
          : new UpstreamRefused({ ...problem, status })
      })

    const told = <A>(asked: Effect.Effect<A, UpstreamFailed>): Effect.Effect<A, UpstreamFailed> =>
      Effect.tapError(
        asked,
        ({ detail: error, status }) => emit("upstream_request_failed", { profile, status, error })
      )
    return {
      directory: told(directory),
      post: (url: string, payload: object | "", by: SignedBy) => told(post(url, payload, by)),
      /** As `post`, for a question to which a refusal is an answer: failures are not logged. */
      probe: (url: string, payload: object | "", by: SignedBy) => post(url, payload, by),
      checked,
      key
    }
  })

/** The client of one upstream. */
export type AcmeClient = Effect.Success<ReturnType<typeof make>>

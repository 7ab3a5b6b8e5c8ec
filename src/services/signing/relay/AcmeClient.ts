import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import type { RequestKey } from "../../../crypto/jose/RequestKey.ts"
import { emit } from "../../../domain/words/Log.ts"
import type { UpstreamResult } from "../../../domain/words/Series.ts"
import { count } from "../../../domain/words/Series.ts"
import type { WebAnswer, WebFailed } from "../../../engine/net/Web.ts"
import { Web } from "../../../engine/net/Web.ts"
import { currentMillis, lifeMillis } from "../../../engine/Time.ts"
import { AskedFor } from "./AskedFor.ts"
import type { Members, UpstreamAnswer } from "./UpstreamAnswer.ts"
import {
  excerptOf,
  isProblem,
  linkedBy,
  objectOf,
  parsed,
  problemIn,
  resultOf,
  retryAfterOf,
  textOf
} from "./UpstreamAnswer.ts"
import type { Directory, Operation } from "./UpstreamDirectory.ts"
import type { UpstreamFailed } from "./UpstreamFailed.ts"
import { UpstreamRefused, UpstreamUnavailable } from "./UpstreamFailed.ts"
import { upstreamUrl, urlFault } from "./UpstreamUrl.ts"

/*
 * The service in the role of an ACME client of an upstream CA (RFC 8555). It signs requests, and checks which parts of
 * an answer it may trust.
 */

/** What identifies the key that signs a request. */
export type SignedBy = "jwk" | { readonly kid: string }

const maxAnswerBytes = 1_048_576
/**
 * The time limit of a request, in milliseconds. While the service starts, nothing else ends a request to an upstream
 * that does not answer.
 */
const answerMillis = 30_000
const nonceTries = 8
const noncesKept = 32
/** The highest number of certificate profiles of an upstream that are remembered. No honest upstream has more. */
const mostProfiles = 100

/** The number of milliseconds after which the directory is read again, because an upstream may change its URLs. */
const directoryLife = 3_600_000

/** The operations whose URLs are in the directory. */
const listed = ["newNonce", "newAccount", "newOrder", "revokeCert", "keyChange"] as const
type Listed = typeof listed[number]
const isListed = (operation: Operation): operation is Listed => (listed as ReadonlyArray<Operation>).includes(operation)

/** Returns whether a failure may mean that the upstream has moved the URL. */
const isGone = ({ _tag, status }: UpstreamFailed): boolean =>
  status === undefined
    ? _tag === "UpstreamUnavailable"
    : [404, 405, 410].includes(status) || (status >= 300 && status <= 399)

/**
 * If the body of an answer to newOrder or newAccount was cut off or did not end in time, treats it as empty. The URL of
 * the new order or account is in the headers, and everything else can be read again from that URL.
 */
const locatedIn = (operation: Operation, error: WebFailed): Effect.Effect<WebAnswer, WebFailed> => {
  const { head } = error
  const isOpened = head !== undefined && (operation === "newOrder" || operation === "newAccount") &&
    (head.status === 200 || head.status === 201) && head.headers.location !== undefined
  return isOpened ? Effect.succeed({ ...head, body: Buffer.alloc(0), truncated: false }) : Effect.fail(error)
}

/**
 * Makes the client of one upstream. The first request is sent only when it is needed. `key` is the key of the account.
 * `profile` is the first profile that uses the client; requests are recorded under this profile unless {@link AskedFor}
 * names another. `reread` reads the key in force again after a refusal, because another process may have changed the
 * key.
 */
export const make = (
  directoryUrl: string,
  key: RequestKey,
  profile: string,
  reread: Effect.Effect<RequestKey> = Effect.succeed(key)
) =>
  Effect.gen(function*() {
    const web = yield* Web
    const base = new URL(directoryUrl)
    const nonces: Array<string> = []
    let current = key
    const known = yield* Ref.make<{ readonly directory: Directory; readonly at: number } | undefined>(undefined)

    const asking = Effect.map(AskedFor, (asker) => asker ?? profile)
    const unavailable = (detail: string, answer: WebAnswer) =>
      Effect.flatMap(currentMillis, (now) => {
        const { body, headers, status } = answer
        const retryAfter = retryAfterOf(headers["retry-after"], now)
        return new UpstreamUnavailable({ detail, status, retryAfter, excerpt: excerptOf(body) })
      })
    const lie = (text: unknown, what: string) =>
      new UpstreamRefused({
        detail: `the upstream names ${urlFault(text, what)}`,
        status: undefined,
        type: "untrusted"
      })

    /** Checks a URL from the upstream. Returns it unchanged, because it is a part of signatures. */
    const checked = (text: unknown, what: string): Effect.Effect<string, UpstreamRefused> =>
      typeof text === "string" && upstreamUrl(text, base) !== undefined ? Effect.succeed(text) : lie(text, what)

    const optional = (members: Members, name: string): Effect.Effect<string | undefined, UpstreamRefused> =>
      members[name] === undefined || members[name] === null
        ? Effect.succeed(undefined)
        : checked(members[name], `a ${name}`)

    const waitIn = (answer: WebAnswer) =>
      Effect.map(currentMillis, (now) => retryAfterOf(answer.headers["retry-after"], now))

    /** Sends one request, and counts it. */
    const send = (
      operation: Operation,
      method: string,
      url: string,
      body?: string
    ): Effect.Effect<WebAnswer, UpstreamUnavailable> =>
      Effect.gen(function*() {
        const begun = yield* lifeMillis
        const asker = yield* asking
        const counted = (result: UpstreamResult) =>
          Effect.flatMap(lifeMillis, (now) =>
            Effect.andThen(
              count("acme_svc_upstream_requests_total", { profile: asker, operation, result }),
              count(
                "acme_svc_upstream_request_duration_seconds",
                { profile: asker, operation },
                (now - begun) / 1000
              )
            ))
        const headers: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/jose+json" }
        const limits = { maxBytes: maxAnswerBytes, withinMillis: answerMillis }
        const answer = yield* web.send({ method, url: new URL(url), headers, body, ...limits }).pipe(
          Effect.catch((error) => locatedIn(operation, error)),
          Effect.mapError(({ detail, unsent = false }) =>
            new UpstreamUnavailable({ detail, status: undefined, unsent })
          ),
          Effect.tapError(({ unsent }) => counted(unsent === true ? "unreachable" : "unanswered"))
        )
        yield* counted(resultOf(answer))
        if (answer.truncated) {
          const detail = `answers with more than ${maxAnswerBytes} bytes`
          return yield* new UpstreamUnavailable({ detail, status: answer.status, isTooLong: true })
        }
        const nonce = answer.headers["replay-nonce"]
        if (typeof nonce === "string" && /^[\w-]{1,512}$/.test(nonce) && nonces.length < noncesKept) nonces.push(nonce)
        return answer
      })

    const readDirectory: Effect.Effect<Directory, UpstreamFailed> = Effect.gen(function*() {
      const answer = yield* send("directory", "GET", directoryUrl)
      const { status } = answer
      if (status !== 200) return yield* unavailable(`the directory answers ${status}`, answer)
      const members = objectOf(parsed(answer.body))
      if (members === undefined) return yield* unavailable("the directory is no JSON object", answer)
      const meta = (members["meta"] ?? {}) as { readonly [member: string]: unknown }
      return {
        newNonce: yield* checked(members["newNonce"], "a newNonce"),
        newAccount: yield* checked(members["newAccount"], "a newAccount"),
        newOrder: yield* checked(members["newOrder"], "a newOrder"),
        revokeCert: yield* optional(members, "revokeCert"),
        keyChange: yield* optional(members, "keyChange"),
        renewalInfo: yield* optional(members, "renewalInfo"),
        termsOfService: textOf(meta["termsOfService"]),
        profiles: Object.keys(objectOf(meta["profiles"]) ?? {}).slice(0, mostProfiles)
      }
    })

    const currentDirectory: Effect.Effect<Directory, UpstreamFailed> = Effect.gen(function*() {
      const directory = yield* readDirectory
      yield* Ref.set(known, { directory, at: yield* currentMillis })
      return directory
    })

    const directory: Effect.Effect<Directory, UpstreamFailed> = Effect.gen(function*() {
      const now = yield* currentMillis
      const found = yield* Ref.get(known)
      return found !== undefined && Math.abs(now - found.at) < directoryLife
        ? found.directory
        : yield* currentDirectory
    })

    /**
     * Returns the failure of a request to a URL of the directory. If the upstream may have moved the URL, forgets the
     * directory. If the upstream has another URL now, a later attempt may succeed.
     */
    const unlessMoved = (operation: Operation, url: string, error: UpstreamFailed) =>
      Effect.gen(function*() {
        if (!isListed(operation) || !isGone(error)) return yield* error
        yield* Ref.set(known, undefined)
        if (error._tag === "UpstreamUnavailable") return yield* error
        const now = yield* Effect.option(directory)
        if (now._tag === "None" || now.value[operation] === url) return yield* error
        const { detail, status, type } = error
        return yield* new UpstreamUnavailable({
          detail: `the upstream has moved ${operation}: ${detail}`,
          status,
          type
        })
      })

    const nonce: Effect.Effect<string, UpstreamFailed> = Effect.gen(function*() {
      const kept = nonces.pop()
      if (kept !== undefined) {
        return kept
      }
      const { newNonce } = yield* directory
      const unmoved = (error: UpstreamFailed) => unlessMoved("newNonce", newNonce, error)
      const answer = yield* Effect.catch(send("newNonce", "HEAD", newNonce), unmoved)
      const { status } = answer
      return nonces.pop() ??
        (yield* Effect.catch(unavailable(`newNonce answers ${status} without a nonce`, answer), unmoved))
    })

    /** Marks a failure as a failure to get a nonce. In that case the request itself was not sent. */
    const unsent = (error: UpstreamFailed): UpstreamFailed =>
      error._tag === "UpstreamRefused"
        ? error
        : new UpstreamUnavailable({
          detail: error.detail,
          status: error.status,
          retryAfter: error.retryAfter,
          excerpt: error.excerpt,
          unsent: true
        })

    /** Returns an answer if it is successful, and fails otherwise. */
    const successOf = (answer: WebAnswer): Effect.Effect<UpstreamAnswer, UpstreamFailed> =>
      Effect.gen(function*() {
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
            next: linkedBy("next", headers.link)[0],
            alternates: linkedBy("alternate", headers.link),
            location: location === undefined ? undefined : yield* checked(location, "a location"),
            retryAfter
          }
        }
        // Without a problem document the cause is unknown: a proxy between this service and the upstream may have
        // refused the request, or the body was lost.
        if (members === undefined || !isProblem(members, headers["content-type"])) {
          const says = status < 400
            ? `${status} instead of a success or a failure`
            : `${status} without a problem document`
          return yield* unavailable(`answers ${says}`, answer)
        }
        const problem = problemIn(members, status)
        const { detail, type } = problem
        const isPassing = status >= 500 || status === 429 || status === 408 || status < 400 ||
          type === "badNonce" || type === "rateLimited" || type === "serverInternal"
        return yield* isPassing
          ? new UpstreamUnavailable({ detail, status, retryAfter, type })
          : new UpstreamRefused({ ...problem, status })
      })

    /**
     * Sends one signed request. An empty payload means a POST-as-GET. If the nonce is refused, the request is sent
     * again with another nonce.
     */
    const post = (
      operation: Operation,
      url: string,
      payload: object | "",
      by: SignedBy,
      tries = nonceTries
    ): Effect.Effect<UpstreamAnswer, UpstreamFailed> =>
      Effect.gen(function*() {
        const used = current
        const header = {
          nonce: yield* Effect.mapError(nonce, unsent),
          url,
          ...(by === "jwk" ? { jwk: used.jwk } : { kid: by.kid })
        }
        const signed = yield* used.sign(header, payload === "" ? "" : JSON.stringify(payload))
        const again = post(operation, url, payload, by, tries - 1)
        return yield* Effect.flatMap(send(operation, "POST", url, JSON.stringify(signed)), successOf).pipe(
          Effect.catchIf(
            ({ type }) => type === "badNonce" && tries > 1,
            () => Effect.andThen(emit("upstream_bad_nonce_retry", { target_host: base.host }), again)
          ),
          Effect.catchIf(
            (error) => error._tag === "UpstreamRefused" && by !== "jwk" && tries > 1,
            (error) =>
              Effect.flatMap(reread, (found) => {
                if (found.thumbprint === used.thumbprint) return Effect.fail(error)
                current = found
                return again
              })
          ),
          Effect.catch((error) => unlessMoved(operation, url, error))
        )
      })

    const log = (failure: UpstreamFailed) => {
      const { detail: error, status } = failure
      const excerpt = failure._tag === "UpstreamUnavailable" ? failure.excerpt : undefined
      return Effect.flatMap(
        asking,
        (asker) => emit("upstream_request_failed", { profile: asker, status, error, body_preview: excerpt })
      )
    }
    const logUnlessRefused = (error: UpstreamFailed) => error._tag === "UpstreamUnavailable" ? log(error) : Effect.void
    const told = <A>(asked: Effect.Effect<A, UpstreamFailed>): Effect.Effect<A, UpstreamFailed> =>
      Effect.tapError(asked, log)
    return {
      directory: told(directory),
      /** Reads the directory again, whenever it was last read. */
      currentDirectory: told(currentDirectory),
      post: (operation: Operation, url: string, payload: object | "", by: SignedBy) =>
        told(post(operation, url, payload, by)),
      /** Sends a signed request like `post`. A refusal is a useful result here, so only other failures are logged. */
      probe: (operation: Operation, url: string, payload: object | "", by: SignedBy) =>
        Effect.tapError(post(operation, url, payload, by), logUnlessRefused),
      /**
       * Reads a public resource without a signature. A refusal is a useful result here, so only other failures are
       * logged.
       */
      get: (operation: Operation, url: string) =>
        Effect.tapError(
          Effect.flatMap(Effect.flatMap(checked(url, "a URL"), (text) => send(operation, "GET", text)), successOf),
          logUnlessRefused
        ),
      checked,
      /** Returns the key in force, as far as this process knows. */
      get key() {
        return current
      }
    }
  })

/** The client of one upstream. */
export type AcmeClient = Effect.Success<ReturnType<typeof make>>

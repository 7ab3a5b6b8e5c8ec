import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AcmeError } from "../../domain/AcmeError.ts"
import {
  DeadlineExceeded,
  HandlerPanicked,
  MethodNotAllowed,
  NoSuchPath,
  ServerInternal,
  UnsupportedMediaType
} from "../../domain/AcmeError.ts"
import type { ProxySettings } from "../../domain/ClientAddress.ts"
import { clientAddress } from "../../domain/ClientAddress.ts"
import { isAcmeError, problemOf, retryAfter } from "../../domain/Problem.ts"
import type { ProblemDocument } from "../../domain/ProblemDocument.ts"
import { emit } from "../../domain/words/Log.ts"
import { makeCors } from "../../engine/http/Cors.ts"
import { unlessHeld } from "../../engine/http/EntityTag.ts"
import type { Shed } from "../../engine/http/HttpRefused.ts"
import { shed } from "../../engine/http/HttpRefused.ts"
import type { Answer, App, Request, Routed } from "../../engine/http/Message.ts"
import { header, isUncoded, unmatched, withHeaders } from "../../engine/http/Message.ts"
import type { FairSemaphore } from "../../engine/net/FairSemaphore.ts"
import { ReverseNames } from "../../engine/net/ReverseNames.ts"
import { Waits } from "../../engine/queue/Waits.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { isReadOnly } from "../../engine/sql/Database.ts"
import { oneSync } from "../../engine/sql/Synced.ts"
import { lifeMillis } from "../../engine/Time.ts"
import { keyAuthorization } from "../../operations/acme/RelayTokens.ts"
import { admitConnection } from "../../operations/PolicyGate.ts"
import { Nonces } from "../../services/nonce/Nonces.ts"
import type { Policies } from "../../services/policy/Policies.ts"
import type { Failure, Needs, Reply } from "./AcmeRoutes.ts"
import { match } from "./AcmeRoutes.ts"
import type { Endpoint } from "./Endpoint.ts"
import type { PendingAnswer } from "./PendingAnswer.ts"
import { inSeconds } from "./PendingAnswer.ts"
import { postedOf } from "./Posted.ts"
import { recording } from "./RefusalRecords.ts"

/** Turns a failure into an answer. One table contains all errors, and every client gets the same content type. */
const problemAnswer = (error: AcmeError, endpoint?: Endpoint): Answer => {
  const problem: ProblemDocument = problemOf(error)
  const seconds = retryAfter(error)
  return {
    status: problem.status,
    headers: {
      "content-type": "application/problem+json",
      ...(seconds === undefined ? {} : { "retry-after": String(seconds) }),
      ...(error._tag === "MethodNotAllowed" ? { allow: error.allow } : {}),
      ...(error._tag === "KeyInUse" && endpoint !== undefined ? { location: endpoint.account(error.accountId) } : {}),
      ...(error._tag === "UserActionRequired" ? { link: `<${error.terms}>;rel="terms-of-service"` } : {})
    },
    body: JSON.stringify(problem)
  }
}

const prefix = "/profile/"

/** A path of a profile: the part after `/profile/<name>`, and the route that it matches, if any. */
interface Place {
  readonly endpoint: Endpoint
  readonly rest: string
  readonly target: ReturnType<typeof match>
}

/** Splits a raw path. Returns `undefined` for a path outside `/profile/<name>/`. */
const placeOf = (endpoints: ReadonlyMap<string, Endpoint>, path: string): Place | undefined => {
  if (!path.startsWith(prefix)) return undefined
  const end = path.indexOf("/", prefix.length)
  if (end < 0) return undefined
  const endpoint = endpoints.get(path.slice(prefix.length, end))
  if (endpoint === undefined) return undefined
  const rest = path.slice(end)
  return { endpoint, rest, target: match(rest) }
}

const patientMillis = 1000

const joseType = /^application\/jose\+json\s*(?:;|$)/i

/** Checks the headers before any byte of the body is read. */
const checkMediaType = (request: Request): Effect.Effect<void, UnsupportedMediaType> => {
  if (!joseType.test(header(request, "content-type") ?? "")) {
    return Effect.andThen(
      emit("jws_rejected", { reason: "content_type" }),
      new UnsupportedMediaType({ detail: "A signed request must have the content type application/jose+json." })
    )
  }
  return isUncoded(request)
    ? Effect.void
    : new UnsupportedMediaType({ detail: "A request body must not be compressed." })
}

const allowed = (route: NonNullable<ReturnType<typeof match>>["route"]): ReadonlyArray<string> => [
  ...(route.get === undefined ? [] : ["GET", "HEAD"]),
  ...(route.post === undefined ? [] : ["POST"])
]

/**
 * The headers that scripts of other origins may read in an answer and set in a request. These are the headers that ACME
 * needs (RFC 8555 section 6.1).
 */
const cors = { exposed: "Replay-Nonce, Link, Location, Retry-After", accepted: "Content-Type" }

/**
 * Makes the ACME surface of the mounted profiles: every layer of docs/contribute/decisions/acme-surface.md, "Layers of
 * a request", except the first.
 */
export const make = (
  endpoints: ReadonlyMap<string, Endpoint>,
  { corsOrigins = [], policies, proxies, respondsForRelay = false, slots, waitMillis }: {
    /** Limits how many requests are handled at the same time. */
    readonly slots: FairSemaphore
    /** How long a request waits for a slot. */
    readonly waitMillis: number
    /** The origins whose scripts may use the profiles: `server.cors_origins`. */
    readonly corsOrigins?: ReadonlyArray<string>
    readonly policies: Policies["Service"]
    /** Whether this process serves the tokens of the relay's http01 strategy. */
    readonly respondsForRelay?: boolean
    /** The proxy settings for requests outside every profile. */
    readonly proxies: ProxySettings
  }
): App<Needs | Nonces> => {
  const refused = recording()
  const addressElsewhere = clientAddress(proxies)
  const shared = corsOrigins.length === 0 ? undefined : makeCors({ ...cors, origins: corsOrigins })
  /** Returns the resource for the path and the method. */
  const resource = (
    request: Request,
    { endpoint, target }: Place,
    body: Buffer | undefined
  ): Effect.Effect<Reply<Needs>, Failure, Needs> => {
    if (target === undefined) return new NoSuchPath()
    const { id, route } = target
    const { method } = request
    if (body !== undefined && route.post !== undefined) return route.post(postedOf(endpoint, request, body, id))
    const read = method === "HEAD" ? route.head ?? route.get : method === "GET" ? route.get : undefined
    if (read !== undefined) return read({ endpoint, id, request })
    if (shared === undefined) return new MethodNotAllowed({ allow: allowed(route).join(", ") })
    const methods = [...allowed(route), "OPTIONS"].join(", ")
    return method === "OPTIONS"
      ? Effect.succeed(shared.preflight(request, methods))
      : new MethodNotAllowed({ allow: methods })
  }

  /**
   * Makes the answer while the request holds a slot. Applies the policy of the connection first, then calls the
   * resource.
   */
  const reply = (
    request: Request,
    at: Place | undefined,
    body: Buffer | undefined
  ): Effect.Effect<Reply<Needs>, Failure, Needs> => {
    if (at === undefined) return new NoSuchPath()
    const { name } = at.endpoint.profile
    const connection = policies.get(name)?.connection
    if (connection === undefined) return resource(request, at, body)
    const { clientIp, method } = request
    return Effect.andThen(
      admitConnection(name, connection, { clientIp, method, path: at.rest }),
      Effect.suspend(() => resource(request, at, body))
    )
  }

  /**
   * Waits, without a slot, for the job that will soon change an answer, and then makes the answer again. If no new
   * answer can be made, the first answer is still correct.
   */
  const settled = Effect.fnUntraced(function*(
    { again, answer, awaits, limitMillis, since }: PendingAnswer<Failure, Needs>,
    begunAt: number
  ): Effect.fn.Return<Answer, Failure, Needs> {
    const { held } = yield* Waits
    const spentMillis = (yield* lifeMillis) - begunAt + waitMillis
    const isHeld = yield* held(since, awaits, limitMillis === undefined ? undefined : { limitMillis, spentMillis })
    // A request without a first answer needs a slot, and waits longer for it, because many held requests may end at
    // once.
    if (answer === undefined) return yield* slots.takeWithin(Math.max(waitMillis, patientMillis), again, shed)
    if (!isHeld) return inSeconds(answer, awaits.pauseSeconds)
    return yield* Effect.orElseSucceed(
      slots.takeWithin(waitMillis, again, shed),
      () => inSeconds(answer, awaits.pauseSeconds)
    )
  })

  const respond = Effect.fnUntraced(function*(request: Request, at: Place | undefined) {
    const begunAt = yield* lifeMillis
    const body = request.method === "POST" ? yield* bodyOf(request, at) : undefined
    const given = yield* slots.takeWithin(waitMillis, reply(request, at, body), shed)
    return "again" in given ? yield* settled(given, begunAt) : given
  })

  /**
   * Adds the headers that every answer of a profile has: links, a nonce, and the headers for scripts of other origins.
   */
  const completed = Effect.fnUntraced(function*(request: Request, at: Place | undefined, answer: Answer) {
    const given = answer.headers.link
    const isDirectory = at?.rest === "/directory" && answer.status < 400
    const index = at === undefined || isDirectory ? [] : [at.endpoint.indexLink]
    const links = [...index, ...(given === undefined ? [] : [given].flat())]
    const linked = links.length === 0 ? answer : withHeaders(answer, { link: links })
    const isNewNonce = at?.rest === "/newNonce"
    const needsNonce = request.method === "POST" || isNewNonce
    const nonce = needsNonce ? yield* (yield* Nonces).issue : undefined
    let whole = linked
    if (!needsNonce) whole = unlessHeld(request, linked)
    else if (nonce !== undefined) whole = withHeaders(linked, { "replay-nonce": nonce, "cache-control": "no-store" })
    // If only a nonce was requested, an answer without a nonce is not a success.
    else if (isNewNonce && answer.status < 300) {
      whole = withHeaders(problemAnswer(new ServerInternal({})), { link: links })
    }
    return shared === undefined || at === undefined ? whole : shared.opened(request, whole)
  })

  const late = (request: Request, at: Place | undefined) =>
    completed(request, at, problemAnswer(new DeadlineExceeded()))

  /**
   * Makes the answer to a request. The answer waits once for the disk, instead of once for each read
   * (docs/contribute/decisions/durability.md). If the sync fails, the process ends, and until then clients get the
   * answer of a request that took too long.
   */
  const handled = (request: Request, at: Place | undefined): Effect.Effect<Answer, never, Needs | Nonces> => {
    const answer = Effect.matchCauseEffect(respond(request, at), {
      onSuccess: (answer) => completed(request, at, answer),
      onFailure: (cause) => {
        const error = Cause.findErrorOption(cause)
        if (Option.isSome(error)) {
          const value = isAcmeError(error.value) ? error.value : new ServerInternal({})
          return Effect.andThen(refused(value, request), completed(request, at, problemAnswer(value, at?.endpoint)))
        }
        const died = cause.reasons.find(Cause.isDieReason)
        if (died === undefined) return Effect.failCause(cause as Cause.Cause<never>) // the client disconnected
        const told = emit("request_handler_panicked", { error: Cause.pretty(Cause.die(died.defect)).slice(0, 2000) })
        return Effect.andThen(told, completed(request, at, problemAnswer(new HandlerPanicked())))
      }
    })
    return Effect.catch(oneSync(answer), () => late(request, at))
  }

  /** Returns the route of a path outside every profile. */
  const elsewhere = (path: string): Pick<Routed<Needs | Nonces>, "pattern" | "handle"> => {
    const root = rootRoutes.get(path)
    if (root !== undefined) return { pattern: path, handle: (request) => onlyRead(request, () => root) }
    if (respondsForRelay && path.startsWith(tokenPrefix)) {
      const token = path.slice(tokenPrefix.length)
      const pattern = `${tokenPrefix}{token}`
      return {
        pattern,
        handle: (request) =>
          onlyRead(request, () => tokenAnswer(slots.takeWithin(waitMillis, keyAuthorization(token), shed)))
      }
    }
    return { pattern: unmatched, handle: (request) => handled(request, undefined) }
  }

  return {
    route: (received) => {
      const at = placeOf(endpoints, received.path)
      const { pattern, handle } = at === undefined
        ? elsewhere(received.path)
        : { pattern: at.target?.pattern ?? unmatched, handle: (request: Request) => handled(request, at) }
      return {
        facts: at === undefined ? {} : { profile: at.endpoint.profile.name },
        pattern,
        clientIp: (at?.endpoint.clientAddress ?? addressElsewhere)(received),
        handle,
        late: (request) => late(request, at)
      }
    }
  }
}

/**
 * Checks the head of a POST, then reads its body. The client's name is looked up before the request takes a slot, so
 * that a slow name server does not occupy slots.
 */
const bodyOf = Effect.fnUntraced(function*(request: Request, at: Place | undefined) {
  yield* checkMediaType(request)
  const body = yield* Effect.tapErrorTag(
    request.body,
    "BodyTooLarge",
    () => emit("jws_rejected", { reason: "body_too_large" })
  )
  if (at !== undefined) yield* (yield* ReverseNames).look(request.clientIp)
  return body
})

const isRead = ({ method }: Request): boolean => method === "GET" || method === "HEAD"

const notRead: Answer = problemAnswer(new MethodNotAllowed({ allow: "GET, HEAD" }))

const onlyRead = <R>(
  request: Request,
  answer: () => Effect.Effect<Answer, never, R>
): Effect.Effect<Answer, never, R> => isRead(request) ? answer() : Effect.succeed(notRead)

const tokenPrefix = "/.well-known/acme-challenge/"

/**
 * Makes the answer to an upstream that requests a token of the relay (RFC 8555 section 8.3). The answer is always plain
 * text.
 */
const tokenAnswer = <R>(
  found: Effect.Effect<string | undefined, StorageFailed | Shed, R>
): Effect.Effect<Answer, never, R> =>
  Effect.match(found, {
    onSuccess: (found): Answer =>
      found === undefined
        ? { status: 404, headers: { "content-type": "text/plain" }, body: "There is no such token.\n" }
        : { status: 200, headers: { "content-type": "application/octet-stream" }, body: found },
    onFailure: ({ _tag }): Answer => ({
      status: _tag === "Shed" ? 503 : 500,
      headers: { "content-type": "text/plain" },
      body: "The token cannot be looked up.\n"
    })
  })

/**
 * The routes outside every profile. Their answers have no nonce and no Link. These routes apply no policy, and send no
 * statement to the database.
 */
const rootRoutes: ReadonlyMap<string, Effect.Effect<Answer, never, Database>> = new Map([
  [
    "/health",
    Effect.map(isReadOnly, (readOnly): Answer => ({
      status: 200,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ healthy: true, ...readOnly ? { database: "read-only" } : {} })
    }))
  ],
  ["/", Effect.succeed<Answer>({ status: 302, headers: { location: "/health" } })]
])

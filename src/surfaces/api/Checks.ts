import { Effect, Either } from "effect"
import type { OperatorError } from "../../domain/OperatorError.ts"
import {
  BadRequest,
  BodyRefused,
  Busy,
  CsrfFailed,
  InsufficientRole,
  MediaTypeRefused,
  MethodRefused,
  MfaPending,
  NoSuchRoute,
  SessionInvalid
} from "../../domain/OperatorError.ts"
import { permits } from "../../domain/OperatorRole.ts"
import type { Request } from "../../kernel/http/Message.ts"
import { header } from "../../kernel/http/Message.ts"
import type { HalfIdentity, Identity } from "../../operations/operators/Identity.ts"
import { hasCsrfToken } from "../../operations/operators/Identity.ts"
import type { Shown } from "./Credentials.ts"
import { checkBody, checkQuery } from "./Decoding.ts"
import { readJson } from "./Json.ts"
import type { Matched, Route } from "./Routes.ts"

/* The checks of a request, in the order of docs/decisions/admin.md, "Order of the checks". */

/** Who sent a request: nobody who is known, somebody who is half signed in, or an operator or a token of one. */
export type Sender = Identity | HalfIdentity | undefined

/** The route of a request, once it is known who sent it: what is not there is not told to strangers. */
export const routeOf = (matched: Matched | undefined, method: string): Either.Either<Route, OperatorError> => {
  if (matched === undefined) return Either.left(new NoSuchRoute())
  const route = matched.methods.get(method === "HEAD" ? "GET" : method)
  if (route !== undefined) return Either.right(route)
  const methods = [...matched.methods.keys()]
  return Either.left(new MethodRefused({ allow: methods.includes("GET") ? ["HEAD", ...methods] : methods }))
}

/** Whether the state of a session fits a route: one that is half signed in reaches the second factor and nothing else. */
export const stateFits = ({ access }: Route, sender: Sender): Either.Either<void, OperatorError> => {
  if (access === "public") return Either.void
  if (sender === undefined) return Either.left(new SessionInvalid())
  if (sender.kind === "half") return access === "half" ? Either.void : Either.left(new MfaPending())
  return access === "half" && sender.kind === "session" ? Either.left(new SessionInvalid()) : Either.void
}

/** Whether a request may change something. */
export const isChange = (method: string): boolean => method !== "GET" && method !== "HEAD"

/** Whether a change carries the CSRF token of its session. A request with a token of the API has no cookie that could be abused. */
export const csrfFits = (
  request: Request,
  { isWithoutCsrf }: Route,
  sender: Sender
): Either.Either<void, OperatorError> => {
  if (!isChange(request.method) || isWithoutCsrf || sender === undefined || sender.kind === "token") return Either.void
  return hasCsrfToken(sender, header(request, "x-csrf-token")) ? Either.void : Either.left(new CsrfFailed())
}

/** Whether the role permits the route; a token reaches neither sign-in nor its owner's own account, nor what asks for a password. */
export const roleFits = (
  { access, isStepUp, isWithoutCsrf }: Route,
  sender: Sender,
  shown: Shown
): Either.Either<void, OperatorError> => {
  const isForSessions = access === "half" || access === "own" || isStepUp || isWithoutCsrf
  if (shown.kind === "token" && isForSessions) return Either.left(new InsufficientRole())
  if (access === "public" || access === "half" || access === "own") return Either.void
  if (sender === undefined || sender.kind === "half") return Either.left(new SessionInvalid())
  return permits(sender.role, access) ? Either.void : Either.left(new InsufficientRole())
}

const queryOf = ({ target }: Request): string => target.includes("?") ? target.slice(target.indexOf("?") + 1) : ""

const jsonType = /^application\/json[ \t]*(?:;|$)/i

const octetsOf = (request: Request, maxBytes: number): Effect.Effect<Buffer, OperatorError> =>
  Effect.mapError(request.body, ({ _tag }) => {
    if (_tag === "BodyTooLarge") return new BodyRefused({ maxBytes })
    return _tag === "BodyTooSlow"
      ? new BadRequest({ detail: "The body did not arrive in time." })
      : new Busy({ retryAfter: 5 })
  })

/** What a request brings, checked against the declaration. */
export interface Brought {
  /** Without the parameters that were left blank. */
  readonly query: URLSearchParams
  /** JSON; absent where the route takes no body. */
  readonly body: unknown
}

/** Size and type of the body, then its members, then the parameters. */
export const brought = (request: Request, route: Route, maxBytes: number): Effect.Effect<Brought, OperatorError> =>
  Effect.gen(function*() {
    const octets = isChange(request.method) ? yield* octetsOf(request, maxBytes) : Buffer.alloc(0)
    const { payload } = route
    let body: unknown
    if (payload !== undefined) {
      const encoding = request.headers["content-encoding"]
      const isPlain = encoding === undefined || encoding === "identity"
      // A body that may be left out altogether needs no type.
      const isAbsent = octets.length === 0 && request.headers["content-type"] === undefined
      if (!isAbsent && (!isPlain || !jsonType.test(header(request, "content-type") ?? ""))) {
        return yield* new MediaTypeRefused()
      }
      const read = isAbsent ? Either.right({}) : readJson(octets)
      body = yield* Either.mapLeft(read, (detail) => new BadRequest({ detail }))
      yield* checkBody(payload, body)
    } else if (octets.length > 0) return yield* new BadRequest({ detail: "This route takes no body." })
    const query = yield* checkQuery(route.query, queryOf(request))
    return { query, body }
  })

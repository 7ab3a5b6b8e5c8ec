import * as Effect from "effect/Effect"
import type { AcmeError } from "../../domain/AcmeError.ts"
import { mostAlternates } from "../../domain/AlternateChain.ts"
import { tagged } from "../../engine/http/EntityTag.ts"
import type { Answer, Request } from "../../engine/http/Message.ts"
import type { StorageFailed } from "../../engine/sql/Database.ts"
import { traced } from "../../engine/telemetry/Tracing.ts"
import { byAnybody, byEither, byJwk, byKid } from "../../operations/acme/Authenticate.ts"
import type { Payload } from "../../operations/acme/JwsChecks.ts"
import { postAsGet } from "../../operations/acme/JwsChecks.ts"
import type { Endpoint } from "./Endpoint.ts"
import { guidePage } from "./GuidePage.ts"
import * as accounts from "./handlers/AcmeAccounts.ts"
import * as authorizations from "./handlers/AcmeAuthorizations.ts"
import * as certificates from "./handlers/AcmeCertificates.ts"
import * as orders from "./handlers/AcmeOrders.ts"
import type { PendingAnswer } from "./PendingAnswer.ts"
import type { BySomeAccount, BySomeKey, BySomeone, Posted } from "./Posted.ts"
import { optional, raw, typed } from "./Posted.ts"

/** The failures of a request. */
export type Failure = AcmeError | StorageFailed

/** The answer to a signed request, or an answer that may soon change. */
export type Reply<R> = Answer | PendingAnswer<Failure, R>

/** The target of an unsigned request: the profile, and the id in the path. */
interface Reached {
  readonly endpoint: Endpoint
  /** The id as received in the path. */
  readonly id: string
}

/** An unsigned request. */
interface Read extends Reached {
  readonly request: Request
}

/** The handlers of the requests for a path, by method. */
export interface Route<R> {
  readonly get?: (read: Read) => Effect.Effect<Answer, Failure, R>
  /** The handler of HEAD. Present only if the answer differs from the answer to GET in more than the missing body. */
  readonly head?: (read: Read) => Effect.Effect<Answer, Failure, R>
  readonly post?: (posted: Posted) => Effect.Effect<Reply<R>, Failure, R>
}

/** Authenticates a request, then handles it. */
const operated = <S, E, E2, R, R2>(
  posted: Posted,
  authenticated: Effect.Effect<S, E, R>,
  handle: (signed: Posted & S) => Effect.Effect<Reply<R2>, E2, R2>
) =>
  Effect.flatMap(
    traced("authenticate", () => ({}), authenticated),
    (signed) => traced("operate", () => ({}), handle({ ...posted, ...signed }))
  )

const kid =
  <P, E extends Failure, R>(read: Payload<P>, handle: (signed: BySomeAccount<P>) => Effect.Effect<Reply<R>, E, R>) =>
  (posted: Posted) => operated(posted, byKid(posted, read), handle)

const jwk =
  <P, E extends Failure, R>(read: Payload<P>, handle: (signed: BySomeKey<P>) => Effect.Effect<Answer, E, R>) =>
  (posted: Posted) => operated(posted, byJwk(posted, read), handle)

const either =
  <P, E extends Failure, R>(read: Payload<P>, handle: (signed: BySomeone<P>) => Effect.Effect<Answer, E, R>) =>
  (posted: Posted) => operated(posted, byEither(posted, read), handle)

const anybody = <R>(handle: (reached: Reached) => Effect.Effect<Answer, never, R>) => (posted: Posted) =>
  operated(posted, byAnybody(posted), handle)

const directory = ({ endpoint }: { readonly endpoint: Endpoint }): Effect.Effect<Answer> =>
  Effect.succeed(tagged("application/json", endpoint.directory))

const nonce = (status: number): Effect.Effect<Answer> =>
  Effect.succeed({ status, headers: { "cache-control": "no-store" } })

/** The alternate chains of a certificate: `/certificate/{id}/1` and so on. */
const alternates = Object.fromEntries(
  Array.from({ length: mostAlternates }, (_, at) => [
    `/certificate/{id}/${at + 1}`,
    { post: kid(postAsGet, orders.certificate(at + 1)) }
  ])
)

/** The resources of a profile: the table of docs/reference/protocol.md, "What this version serves". */
const table = {
  "/": { get: guidePage },
  "/directory": { get: directory, post: anybody(directory) },
  "/newNonce": { get: () => nonce(204), head: () => nonce(200), post: anybody(() => nonce(204)) },
  "/newAccount": { post: jwk(typed(accounts.NewAccount), accounts.newAccount) },
  "/acct/{id}": { post: kid(optional(accounts.AccountUpdate), accounts.account) },
  "/acct/{id}/orders": { post: kid(postAsGet, accounts.ordersOfAccount) },
  "/keyChange": { post: kid(raw, accounts.keyChange) },
  "/newOrder": { post: kid(typed(orders.NewOrder), orders.newOrder) },
  "/renewalInfo/{id}": { get: certificates.renewalInformation },
  "/order/{id}": { post: kid(postAsGet, orders.order) },
  "/order/{id}/finalize": { post: kid(typed(orders.Finalize), orders.finalizeOrder) },
  "/authz/{id}": { post: kid(optional(authorizations.AuthorizationUpdate), authorizations.authorization) },
  "/chall/{id}": { post: kid(optional(authorizations.Trigger), authorizations.challenge) },
  "/certificate/{id}": { post: kid(postAsGet, orders.certificate(0)) },
  ...alternates,
  "/revokeCert": { post: either(typed(certificates.RevokeCert), certificates.revocation) },
  "/crl": { get: certificates.published("/crl") },
  "/crl/{id}": { get: certificates.published("/crl/{id}") },
  "/ca.pem": { get: certificates.published("/ca.pem") },
  "/issuer.cer": { get: certificates.published("/issuer.cer") },
  "/issuer/{id}": { get: certificates.published("/issuer/{id}") }
}

type NeedsOf<T> = {
  [M in keyof T]: T[M] extends (request: never) => Effect.Effect<unknown, unknown, infer R> ? R : never
}[keyof T]

/** All services that the resources need. */
export type Needs = {
  [P in keyof typeof table]: NeedsOf<(typeof table)[P]>
}[keyof typeof table]

const routes = new Map<string, Route<Needs>>(Object.entries(table))

/** The patterns of all paths that accept signed requests. */
export const signedPatterns: ReadonlyArray<string> = [...routes].flatMap(([pattern, { post }]) =>
  post === undefined ? [] : [pattern]
)

/**
 * Returns the route of a path below `/profile/<name>`, with its pattern and the id in the path. The path must be given
 * exactly as it was received.
 */
export const match = (
  path: string
): { readonly route: Route<Needs>; readonly pattern: string; readonly id: string } | undefined => {
  const second = path.indexOf("/", 1)
  if (second < 0) {
    const route = routes.get(path)
    return route === undefined ? undefined : { route, pattern: path, id: "" }
  }
  const third = path.indexOf("/", second + 1)
  const end = third < 0 ? path.length : third
  const pattern = `${path.slice(0, second)}/{id}${path.slice(end)}`
  const route = routes.get(pattern)
  return route === undefined ? undefined : { route, pattern, id: path.slice(second + 1, end) }
}

import * as Effect from "effect/Effect"
import { NotFound } from "../../domain/AcmeError.ts"
import { isId } from "../../domain/Id.ts"
import type { Request } from "../../engine/http/Message.ts"
import type { ByAccount, ByEither, ByKey, SignedRequest } from "../../operations/acme/Authenticate.ts"
import type { Endpoint } from "./Endpoint.ts"

/** A POST whose body has been read. */
export interface Posted extends SignedRequest {
  readonly endpoint: Endpoint
  /** The record id in the path, if the route has one. It has not been checked, so it can be any text. */
  readonly id: string
  /** The query with its question mark; empty if the URL has no query. */
  readonly query: string
}

/** The input of a handler for requests signed by an account. */
export type BySomeAccount<P> = Posted & ByAccount<P>

/** The input of newAccount. */
export type BySomeKey<P> = Posted & ByKey<P>

/** The input of revokeCert. */
export type BySomeone<P> = Posted & ByEither<P>

/** Returns a request with its body, for a route of a profile. */
export const postedOf = (
  endpoint: Endpoint,
  { clientIp: ip, id: request_id, path, target, userAgent: user_agent }: Request,
  body: Buffer,
  id: string
): Posted => ({
  profile: endpoint.profile,
  url: endpoint.origin + target,
  accountPrefix: endpoint.accountPrefix,
  body,
  sender: { ip, user_agent, request_id },
  endpoint,
  id,
  query: target.slice(path.length)
})

/**
 * Returns the id in the path as an id of this service. For any other text, fails as for a record that does not exist.
 */
export const recordId = <Id>(make: (id: string) => Id, id: string): Effect.Effect<Id, NotFound> =>
  isId(id) ? Effect.succeed(make(id)) : new NotFound()

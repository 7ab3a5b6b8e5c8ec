import type * as Effect from "effect/Effect"
import type { ClientFacts } from "../../domain/words/JobKind.ts"
import type { Answer, Request } from "../../engine/http/Message.ts"
import type {
  HalfIdentity,
  Requester,
  SessionIdentity,
  SessionToken
} from "../../operations/operator/identity/Identity.ts"
import type { Failure } from "../operator/gate/Failures.ts"
import type { Access, Sender } from "../operator/gate/OperatorChecks.ts"
import type { Guarded } from "../operator/gate/RouteMatcher.ts"

/* Routes of the panel: their requests, and their replies. */

/** A request that has passed its checks. */
export interface Given<S = Sender> {
  readonly request: Request
  readonly query: URLSearchParams
  /** The fields of the form. A GET has no fields. */
  readonly form: URLSearchParams
  /** The parameters of the path, by name. */
  readonly parameters: { readonly [name: string]: string }
  readonly sender: S
  readonly client: ClientFacts
  /** The value of the session cookie of the request. */
  readonly held?: SessionToken | undefined
}

/** A page that is made from a template. If only a fragment is requested, only the fragment is sent. */
export interface Page {
  readonly _tag: "Page"
  /** The file below `templates/`, without its ending. */
  readonly template: string
  readonly title: string
  readonly data: { readonly [name: string]: unknown }
  readonly status?: number
  /**
   * Whether the shown data can still change by itself. A steady page is refreshed for as long as it is open
   * (docs/contribute/decisions/panel.md, "Live refresh").
   */
  readonly isLive?: boolean | "steady"
  readonly headers?: Answer["headers"]
}

/** A redirect to another page. */
export interface Moved {
  readonly _tag: "Moved"
  /** A path of the panel with its query. */
  readonly to: string
  readonly headers?: Answer["headers"]
}

/** A finished answer. */
export interface Sent {
  readonly _tag: "Sent"
  readonly answer: Answer
}

/** The reply of a route. */
export type Reply = Page | Moved | Sent

/** A route of the panel. */
export interface Route<R = never> extends Guarded {
  readonly handle: (given: Given) => Effect.Effect<Reply, Failure, R>
}

/** Makes the reply with a page: its template, its title and the data of the template. */
export const page = (
  template: string,
  title: string,
  data: Page["data"] = {},
  more: Pick<Page, "headers" | "isLive" | "status"> = {}
): Page => ({ _tag: "Page", template, title, data, ...more })

/** Replies with a redirect. */
export const moved = (to: string, headers: Answer["headers"] = {}): Moved => ({ _tag: "Moved", to, headers })

type Handle<S, R> = (given: Given<S>) => Effect.Effect<Reply, Failure, R>

const guard = (method: "GET" | "POST", pattern: string, access: Access): Guarded => ({
  method,
  pattern,
  access,
  isWithoutCsrf: false,
  isStepUp: false,
  isForPeople: true
})

/** Makes a route that needs no session. The check of the origin protects its forms. */
export const open = <R>(method: "GET" | "POST", pattern: string, handle: Handle<Sender, R>): Route<R> => ({
  ...guard(method, pattern, "public"),
  isWithoutCsrf: true,
  handle
})

/** Makes a route for a session that lacks its second factor. The check of the origin protects its forms. */
export const halfway = <R>(method: "GET" | "POST", pattern: string, handle: Handle<HalfIdentity, R>): Route<R> => ({
  ...guard(method, pattern, "half"),
  isWithoutCsrf: true,
  handle: handle as Route<R>["handle"] // the checks refuse every other sender
})

/** Makes a route for operators with this role or a higher role. With `own`, every operator may use the route. */
export const forRole =
  (access: "own" | "viewer" | "operator" | "admin") =>
  <R>(method: "GET" | "POST", pattern: string, handle: Handle<SessionIdentity, R>): Route<R> => ({
    ...guard(method, pattern, access),
    handle: handle as Route<R>["handle"]
  })

/**
 * Makes the route of a page that only reads, and that may lack the changes of the last seconds. Its reads may go to a
 * standby (docs/contribute/decisions/standby.md).
 */
export const laggingPage = <R>(pattern: string, handle: Handle<SessionIdentity, R>): Route<R> => ({
  ...forRole("viewer")("GET", pattern, handle),
  mayLag: true
})

/** Returns the facts about a request that operations need. */
export const requesterOf = ({ client, held }: Given): Requester => ({ client, surface: "ui", held })

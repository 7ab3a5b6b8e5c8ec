import type { Effect } from "effect"
import type { Answer, Request } from "../../kernel/http/Message.ts"
import type { ClientFacts } from "../../kernel/queue/Job.ts"
import type { HalfIdentity, Requester, SessionIdentity } from "../../operations/operators/Identity.ts"
import { operatorOf } from "../../operations/operators/Identity.ts"
import type { Access } from "../admin/Access.ts"
import type { Sender } from "../admin/Checks.ts"
import type { Guarded } from "../admin/Routes.ts"

/* What a route of the panel is given, and what it answers. */

/** A request whose checks have passed. */
export interface Given<S = Sender> {
  readonly request: Request
  readonly query: URLSearchParams
  /** The fields of a form; empty for a page that is only read. */
  readonly form: URLSearchParams
  /** The parts of the path that are parameters. */
  readonly parameters: { readonly [name: string]: string }
  readonly sender: S
  readonly client: ClientFacts
}

/** A page from a template, or its fragment where only that is asked for. */
export interface Page {
  readonly _tag: "Page"
  /** The file below `templates/`, without its ending. */
  readonly template: string
  readonly title: string
  readonly data: { readonly [name: string]: unknown }
  readonly status?: number
  /** Whether what the fragment shows can still change by itself (docs/decisions/panel.md, "Live refresh"). */
  readonly isLive?: boolean
  readonly headers?: Answer["headers"]
}

/** Another page to go to. */
export interface Moved {
  readonly _tag: "Moved"
  /** A path of the panel with its query. */
  readonly to: string
  readonly headers?: Answer["headers"]
}

/** An answer as it is sent. */
export interface Sent {
  readonly _tag: "Sent"
  readonly answer: Answer
}

/** What a route answers. */
export type Reply = Page | Moved | Sent

/** A failure of an operation; one that is not an operator's is answered as one of the service. */
export interface Failure {
  readonly _tag: string
  readonly message: string
}

/** A route of the panel. */
export interface Route<R = never> extends Guarded {
  readonly handle: (given: Given) => Effect.Effect<Reply, Failure, R>
}

/** A page. */
export const page = (
  template: string,
  title: string,
  data: Page["data"] = {},
  more: Pick<Page, "headers" | "isLive" | "status"> = {}
): Page => ({ _tag: "Page", template, title, data, ...more })

/** Sends the browser elsewhere. */
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

/** A page that needs no session. Its forms are covered by the check of the origin. */
export const open = <R>(method: "GET" | "POST", pattern: string, handle: Handle<Sender, R>): Route<R> => ({
  ...guard(method, pattern, "public"),
  isWithoutCsrf: true,
  handle
})

/** A page for whoever still has to give the second factor. Its forms are covered by the check of the origin too. */
export const halfway = <R>(method: "GET" | "POST", pattern: string, handle: Handle<HalfIdentity, R>): Route<R> => ({
  ...guard(method, pattern, "half"),
  isWithoutCsrf: true,
  // The checks let nobody else come this far.
  handle: (given) => handle(given as Given<HalfIdentity>)
})

/** A page for operators of this role or a higher one; `own` is for every operator. */
export const forRole =
  (access: "own" | "viewer" | "operator" | "admin") =>
  <R>(method: "GET" | "POST", pattern: string, handle: Handle<SessionIdentity, R>): Route<R> => ({
    ...guard(method, pattern, access),
    handle: (given) => handle(given as Given<SessionIdentity>)
  })

/** What operations ask of the sender of a request. */
export const requesterOf = ({ client }: Given): Requester => ({ client, surface: "ui" })

/** Who acts, as operations and audit rows name them. */
export const operatorIn = (given: Given<SessionIdentity>) => operatorOf(given.sender, requesterOf(given))

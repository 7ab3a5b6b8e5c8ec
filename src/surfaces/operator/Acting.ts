import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { BadRequest } from "../../domain/OperatorError.ts"
import type { OperatorRole } from "../../domain/OperatorRole.ts"
import type { AtKeyboard, Operator } from "../../operations/Operator.ts"
import { mostOverApi } from "../../operations/operator/Exports.ts"
import type {
  HalfIdentity,
  Requester,
  SessionIdentity,
  SessionToken
} from "../../operations/operator/identity/Identity.ts"
import type { Resolved } from "../../settings/Resolve.ts"

/* What an act knows about the caller and the surface. */

/** The caller of an act. */
export class Acting extends Context.Service<Acting, {
  readonly operator: Operator
  /** The role of the caller. A person at the command line may do everything. */
  readonly role: OperatorRole
}>()("acme/surfaces/operator/Acting") {
  /** The operator, in the form of operations and audit rows. */
  static readonly operator: Effect.Effect<Operator, never, Acting> = Effect.map(this, ({ operator }) => operator)
  /** The highest number of rows in a file. Undefined for the command line, which has no limit. */
  static readonly mostExported: Effect.Effect<number | undefined, never, Acting> = Effect.map(
    this,
    ({ operator }) => operator.kind === "cli" ? undefined : mostOverApi
  )
}

/** The person at the command line. Only acts without a route may use this service. */
export class ActingAtKeyboard extends Context.Service<ActingAtKeyboard, AtKeyboard>()(
  "acme/surfaces/operator/ActingAtKeyboard"
) {}

/** The session of the caller. Only acts without a command may use this service. */
export class ActingSession extends Context.Service<ActingSession, SessionIdentity>()(
  "acme/surfaces/operator/ActingSession"
) {}

/** The caller's session that still lacks its second factor. */
export class ActingHalf extends Context.Service<ActingHalf, HalfIdentity>()("acme/surfaces/operator/ActingHalf") {}

/**
 * The facts about the sender of a request, and the session cookie of its answer. Only acts without a command may use
 * this service.
 */
export class Asking extends Context.Service<Asking, {
  readonly requester: Requester
  /** Sets the session cookie in the browser. */
  readonly begin: (token: SessionToken) => Effect.Effect<void>
  /** Removes the session cookie from the browser. */
  readonly end: Effect.Effect<void>
}>()("acme/surfaces/operator/Asking") {
  /** See {@link Requester}. */
  static readonly requester: Effect.Effect<Requester, never, Asking> = Effect.map(this, ({ requester }) => requester)
}

/** The services that a request gives to an act. */
export type OfRequest = Acting | ActingHalf | ActingSession | Asking

/** The configuration that the acts use, and the limits of the surface. */
export class Configured extends Context.Service<Configured, {
  readonly resolved: Pick<Resolved, "config" | "sources">
  readonly version: string
  /** The highest number of rows on one page. */
  readonly mostRows: number
  /**
   * Whether the configuration on the disk is refused. If so, it is not the served configuration, and only its database
   * section can be trusted.
   */
  readonly isRefused?: boolean
}>()("acme/surfaces/operator/Configured") {
  /** The served configuration, if it is known. */
  static readonly served = Effect.map(
    this,
    ({ isRefused, resolved }) => isRefused === true ? undefined : resolved.config
  )
  /** The values of the configuration. */
  static readonly config = Effect.map(this, ({ resolved }) => resolved.config)
}

/**
 * The OpenAPI document of the API, which is made from the acts themselves. Only acts without a command may use this
 * service.
 */
export class ApiDocument extends Context.Service<ApiDocument, {
  readonly document: Effect.Effect<{ readonly [member: string]: unknown }>
}>()("acme/surfaces/operator/ApiDocument") {}

/** A page of a list that an operation has found. */
interface FoundPage<A> {
  readonly items: ReadonlyArray<A>
  readonly total: number
  readonly truncated?: boolean
}

/**
 * Returns a page of a list, in the form in which every surface shows pages. `list` is called with the number of rows
 * that the surface may show at once. All other members of the result of `list` are kept.
 */
export const paged = Effect.fnUntraced(function*<A, B, M extends object, E, R>(
  { limit, offset }: { readonly limit: number; readonly offset: number },
  list: (window: { readonly limit: number; readonly offset: number }) => Effect.Effect<FoundPage<A> & M, E, R>,
  shown: (item: A) => B
) {
  const window = { limit: Math.min(limit, (yield* Configured).mostRows), offset }
  const { items, truncated = false, ...more } = yield* list(window)
  return { items: items.map(shown), ...more, ...window, ...truncated ? { truncated: true as const } : {} }
})

/** Refuses a period that ends before it begins. Acts use this function for `fits`. */
export const periodFits = (
  { since, until }: { readonly since: number | undefined; readonly until: number | undefined }
): Effect.Effect<void, BadRequest> =>
  since !== undefined && until !== undefined && until <= since
    ? new BadRequest({ detail: "until takes a time after that of since." })
    : Effect.void

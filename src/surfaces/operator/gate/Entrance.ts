import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { OperatorError } from "../../../domain/OperatorError.ts"
import { ForeignOrigin, Internal, NoSuchRoute, SessionInvalid } from "../../../domain/OperatorError.ts"
import type { ClientFacts } from "../../../domain/words/JobKind.ts"
import { emit } from "../../../domain/words/Log.ts"
import type { Request } from "../../../engine/http/Message.ts"
import type { ReverseNames } from "../../../engine/net/ReverseNames.ts"
import type { Database, StorageFailed } from "../../../engine/sql/Database.ts"
import { currentAsker } from "../../../engine/sql/ReaderSemaphore.ts"
import { authenticateToken } from "../../../operations/operator/identity/Bearer.ts"
import type { SessionToken } from "../../../operations/operator/identity/Identity.ts"
import type { SignInSettings } from "../../../operations/operator/identity/LoginLimiter.ts"
import * as sessions from "../../../operations/operator/identity/Sessions.ts"
import { admitOperator } from "../../../operations/PolicyGate.ts"
import type { Policy } from "../../../services/policy/Policy.ts"
import { shownBy } from "./Credentials.ts"
import type { Shown } from "./Credentials.ts"
import type { Sender } from "./OperatorChecks.ts"
import { csrfFits, isChange, roleFits, stateFits } from "./OperatorChecks.ts"
import { isForeign, originOf, sentOrigin } from "./Origin.ts"
import type { Guarded, Matched } from "./RouteMatcher.ts"
import { isReachedByAnybody, routeOf } from "./RouteMatcher.ts"

/** The services that the checks of a request use. */
export interface CheckServices {
  /** Applies the policy of this listener to a request. */
  readonly admit: (request: Request) => Effect.Effect<void, OperatorError>
  /** Returns a client with its reverse name, if the name is found in time. */
  readonly named: (client: ClientFacts & { readonly ip: string }) => Effect.Effect<ClientFacts>
  /** Returns the sender to whom a session or a token belongs, or undefined if the request has neither. */
  readonly identify: (
    shown: Shown,
    client: ClientFacts,
    options: { readonly touch: boolean }
  ) => Effect.Effect<Sender, OperatorError, Database>
}

/** Returns the `CheckServices` for a configuration. */
export const checkServicesOf = (
  settings: SignInSettings,
  { names, policy }: { readonly policy: Policy | undefined; readonly names: ReverseNames["Service"] }
): CheckServices => {
  const connection = policy?.connection
  return {
    admit: (request) => connection === undefined ? Effect.void : admitOperator(connection, request),
    named: (client) =>
      Effect.map(
        Effect.andThen(names.look(client.ip), names.of(client.ip)),
        (ptr) => ptr === undefined ? client : { ...client, ptr }
      ),
    identify: (shown, client, options) => {
      if (shown.kind === "nothing") return Effect.succeed(undefined)
      const secret = Redacted.make(shown.token)
      const found: Effect.Effect<Sender, OperatorError | StorageFailed, Database> = shown.kind === "token"
        ? authenticateToken(secret, { client, surface: "api" })
        : Effect.catchTag(
          sessions.authenticate(settings, secret, options),
          "MfaPending",
          () => sessions.authenticateHalf(settings, secret)
        )
      return Effect.catchTag(found, "StorageFailed", () => new Internal())
    }
  }
}

/** The name of the share that all clients without a sign-in have together. */
const strangers = ""

/**
 * Counts the database reads of a request in the share of its operator. All sessions and tokens of one operator use the
 * same share, whatever their addresses are.
 */
export const askedBy = (sender: Sender) => {
  const name = sender?.userId ?? strangers
  return Effect.provideService(currentAsker, { host: name, network: name })
}

/*
 * The checks of every request of an operator. They run before the route handles the request
 * (docs/contribute/decisions/admin.md, "Order of the checks").
 */

/** Returns why a check refused a request, for the log. Operations log their own refusals. */
const reasonOf = (error: OperatorError): "csrf" | "role" | "session_state" | undefined => {
  switch (error._tag) {
    case "CsrfFailed":
      return "csrf"
    case "InsufficientRole":
      return "role"
    case "MfaPending":
    case "SessionExpired":
    case "SessionIdle":
    case "SessionInvalid":
      return "session_state"
    default:
      return undefined
  }
}

const refusing = (error: OperatorError, sender?: Sender): Effect.Effect<never, OperatorError> => {
  const reason = reasonOf(error)
  return reason === undefined
    ? Effect.fail(error)
    : Effect.andThen(
      emit("admin_request_refused", { reason, username: sender?.username, origin: undefined, sent_origin: undefined }),
      Effect.fail(error)
    )
}

/** A request that has passed the checks. */
export interface Entered<R> {
  readonly route: R
  /** The segments of the path that are parameters, by their names. */
  readonly parameters: { readonly [name: string]: string }
  readonly sender: Sender
  readonly client: ClientFacts
  /** The session cookie of the request. On an open route, the session of this cookie has not been looked up. */
  readonly held?: SessionToken | undefined
}

/** A check refused a request. `sender` is set if the sender was already known. */
export class TurnedAway extends Data.TaggedError("TurnedAway")<{
  readonly error: OperatorError
  readonly sender: Sender
}> {}

/**
 * Checks a request against the routes that its path matches, if there are any. If `isOurs` is set, a stranger must not
 * learn whether the path exists.
 */
export type Entrance = <R extends Guarded>(
  request: Request,
  matched: Matched<R> | undefined,
  isOurs: boolean
) => Effect.Effect<Entered<R>, TurnedAway, Database>

/** Makes the entrance of a listener whose URL is `baseUrl`. */
export const entranceOf = (baseUrl: string, checkServices: CheckServices): Entrance => {
  const origin = originOf(baseUrl)
  return (request, matched, isOurs) => {
    const { clientIp: ip, id: request_id, userAgent: user_agent } = request
    const asked = { ip, request_id, user_agent }
    let known: Sender
    return Effect.gen(function*() {
      yield* checkServices.admit(request)
      if (matched === undefined && !isOurs) return yield* new NoSuchRoute()
      if (isForeign(request, origin)) {
        const from = sentOrigin(request)
        yield* emit("admin_request_refused", { reason: "origin", username: undefined, origin, sent_origin: from })
        return yield* new ForeignOrigin({ from, panel: `${baseUrl}/ui/` })
      }
      const isOpen = isReachedByAnybody(matched, request.method)
      const shown = yield* Effect.fromResult(shownBy(request))
      // On an open route the sender is not looked up, so that a health probe needs no database access.
      const sender = isOpen ? undefined : yield* Effect.catch(
        checkServices.identify(shown, asked, { touch: request.headers["x-panel-refresh"] !== "1" }),
        (error) => refusing(error)
      )
      known = sender
      if (sender === undefined && !isOpen) return yield* refusing(new SessionInvalid())
      const route = yield* Effect.fromResult(routeOf(matched, request.method))
      const fits = Result.all([
        stateFits(route, sender),
        csrfFits(request, route, sender),
        roleFits(route, sender, shown)
      ])
      if (Result.isFailure(fits)) return yield* refusing(fits.failure, sender)
      // The name server is queried only for a request that may change something, because an audit row then names the
      // client.
      const client = isChange(request.method) ? yield* checkServices.named(asked) : asked
      return {
        route,
        parameters: matched?.parameters ?? {},
        sender,
        client,
        held: shown.kind === "session" ? Redacted.make(shown.token) : undefined
      }
    }).pipe(Effect.mapError((error) => new TurnedAway({ error, sender: known })))
  }
}

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { BadRequest, MediaTypeRefused } from "../../domain/OperatorError.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Answer, Request } from "../../engine/http/Message.ts"
import { json } from "../../engine/http/Message.ts"
import { Database } from "../../engine/sql/Database.ts"
import { eachSynced } from "../../engine/sql/Synced.ts"
import type { Exported } from "../../operations/operator/Exports.ts"
import type { Requester } from "../../operations/operator/identity/Identity.ts"
import { operatorOf } from "../../operations/operator/identity/Identity.ts"
import { stepUp } from "../../operations/operator/identity/StepUp.ts"
import type { AnyAct } from "./Act.ts"
import { encoded, perform } from "./Act.ts"
import type { OfRequest } from "./Acting.ts"
import { Acting, ActingHalf, ActingSession, Asking, Configured } from "./Acting.ts"
import type { ActRoute } from "./ActRoute.ts"
import { clearSession, setSession } from "./gate/Credentials.ts"
import type { Entered } from "./gate/Entrance.ts"
import { shownFailure } from "./gate/Failures.ts"
import { isPlain, octetsOf, readFields } from "./gate/OperatorBody.ts"
import { isChange } from "./gate/OperatorChecks.ts"
import type { Sender } from "./gate/OperatorChecks.ts"
import { readJson } from "./Json.ts"
import type { GivenMembers } from "./MemberInput.ts"
import { inputOf, membersOfBody, membersOfTexts } from "./MemberInput.ts"

/**
 * Checks the caller's password before an act runs that requires it (docs/contribute/decisions/admin.md, "Operators").
 */
export const steppedUp = Effect.fnUntraced(function*(
  { http }: Pick<AnyAct<never>, "http">,
  { password }: { readonly password?: unknown }
) {
  if (http?.isStepUp !== true) return
  const { admin } = yield* Configured.config
  yield* stepUp(admin, yield* ActingSession, Redacted.make(String(password)), yield* Asking.requester)
})

/** The services that the check of the password needs. */
export type StepUpServices = Effect.Services<ReturnType<typeof steppedUp>>

/* Answers a request that has passed its checks: reads its members, runs the act, and writes the output. */

/** Returns the query of a request. */
const queryOf = ({ target }: Request): Result.Result<URLSearchParams, OperatorError> => {
  const query = readFields(target.includes("?") ? target.slice(target.indexOf("?") + 1) : "")
  return query === undefined
    ? Result.fail(new BadRequest({ detail: "The query is not UTF-8." }))
    : Result.succeed(query)
}

const jsonType = /^application\/json[ \t]*(?:;|$)/i

/** Returns whether the octets are `{}`, which some clients send instead of an empty body. */
const isEmptyObject = (octets: Uint8Array): boolean => {
  const read = readJson(octets)
  return Result.isSuccess(read) && JSON.stringify(read.success) === "{}"
}

/** Reads the body of a request. The body is read to its end even if it must be empty. */
const bodyOf = Effect.fnUntraced(function*(
  request: Request,
  { body, hasBody }: ActRoute<never>,
  maxBytes: number
): Effect.fn.Return<GivenMembers, OperatorError> {
  if (!isChange(request.method)) return {}
  const octets = yield* octetsOf(request, maxBytes, "body")
  if (!hasBody) {
    if (octets.length === 0 || (isPlain(request, jsonType) && isEmptyObject(octets))) return {}
    return yield* new BadRequest({ detail: "This route takes no body." })
  }
  // An empty body counts as no body, whatever its media type, because some clients set the same media type on all
  // requests.
  if (octets.length === 0) return {}
  if (!isPlain(request, jsonType)) return yield* new MediaTypeRefused()
  const value = yield* Effect.fromResult(
    Result.mapError(readJson(octets), (detail) => new BadRequest({ detail }))
  )
  return yield* Effect.fromResult(membersOfBody(body, value))
})

/** Reads the body and then the query of a request, and then checks all members. */
const inputOfRequest = Effect.fnUntraced(function*(
  request: Request,
  route: ActRoute<never>,
  parameters: GivenMembers,
  maxBytes: number
) {
  const body = yield* bodyOf(request, route, maxBytes)
  const ofBody = yield* Effect.fromResult(inputOf(route.body, body, "member"))
  const texts = yield* Effect.fromResult(queryOf(request))
  const query = yield* Effect.fromResult(membersOfTexts(route.query, texts, "parameter"))
  const ofQuery = yield* Effect.fromResult(inputOf(route.query, query, "parameter"))
  const ofPath = yield* Effect.fromResult(inputOf(route.path, parameters, "parameter"))
  return { ...ofPath, ...ofQuery, ...ofBody }
})

/** Returns whether the act is meant for this kind of sender. The checks have already refused every other sender. */
const isMeant = ({ access }: ActRoute<never>, sender: Sender): boolean => {
  if (access === "public") return true
  if (access === "half") return sender?.kind === "half"
  return access === "own" ? sender?.kind === "session" : sender?.kind === "session" || sender?.kind === "token"
}

/**
 * Returns the services that a request provides to an act: its sender, and the means to set the cookie of the answer. It
 * is a defect if an act needs a service that its access does not provide.
 */
export const contextOf = (sender: Sender, requester: Requester, setCookie: (cookie: string) => void = () => {}) => {
  const asking = Context.make(Asking, {
    requester,
    begin: (token) => Effect.sync(() => setCookie(setSession(Redacted.value(token)))),
    end: Effect.sync(() => setCookie(clearSession))
  })
  // Only services for this sender are provided, so that no act can run in the name of another sender.
  const given = sender === undefined
    ? asking
    : sender.kind === "half"
    ? Context.add(asking, ActingHalf, sender)
    : Context.add(asking, Acting, { operator: operatorOf(sender, requester), role: sender.role })
  return (sender?.kind === "session" ? Context.add(given, ActingSession, sender) : given) as Context.Context<OfRequest>
}

/**
 * Answers with a file that is sent while its rows are read. The export is logged after the whole file was sent. The
 * rows are read after the answer has begun, so each read waits for the disk itself.
 */
export const fileAnswer = ({ fileName, format, list, mediaType, text }: Exported, username: string | undefined) =>
  Effect.map(eachSynced(Effect.context<Database>()), (context): Answer => {
    let octets = 0
    const counted = Stream.tap(Stream.encodeText(text), (chunk) => Effect.sync(() => void (octets += chunk.length)))
    const told = Effect.suspend(() => emit("admin_export_completed", { username, list, format, body_bytes: octets }))
    return {
      status: 200,
      headers: { "content-disposition": `attachment; filename="${fileName}"`, "content-type": mediaType },
      stream: Stream.provideContext(Stream.concat(counted, Stream.fromEffectDrain(told)), context)
    }
  })

/** Returns the act's answer to a request that has passed the checks. */
export const answerOf = Effect.fnUntraced(function*<R>(
  request: Request,
  { held, client, parameters, route, sender }: Entered<ActRoute<R>> & { readonly parameters: GivenMembers },
  maxBytes: number
) {
  const input = yield* inputOfRequest(request, route as ActRoute<never>, parameters, maxBytes)
  if (!isMeant(route as ActRoute<never>, sender)) {
    return yield* Effect.die(new Error(`a request of ${sender?.kind ?? "nobody"} reached an act that is not for it`))
  }
  let headers: { readonly "set-cookie"?: string } = {}
  const context = contextOf(sender, { client, held, surface: "api" }, (cookie) => headers = { "set-cookie": cookie })
  // A failure that operators cannot fix is turned into an internal error.
  const performed = Effect.catch(
    perform(route.act, input),
    (failure) => Effect.flatMap(shownFailure(failure), (error) => Effect.fail(error))
  )
  const value = yield* Effect.provideContext(Effect.andThen(steppedUp(route.act, input), performed), context)
  if (route.status === 204) return { status: 204, headers }
  if (route.isFile) return yield* fileAnswer(value as Exported, sender?.username)
  const { status } = route.forms.find(({ is }) => is(value)) ?? route
  return json(status, yield* encoded(route.act, value), headers)
})

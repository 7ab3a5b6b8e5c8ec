import * as Effect from "effect/Effect"
import { emit } from "../../../domain/words/Log.ts"
import { transaction } from "../../../engine/sql/Database.ts"
import * as audit from "../../../store/AuditRows.ts"
import * as sessions from "../../../store/operators/SessionRows.ts"
import type { AtKeyboard, Operator } from "../../Operator.ts"
import { actorFields, actorOf } from "../../Operator.ts"
import { readForOperator } from "../OperatorReads.ts"
import type { SignInSettings } from "./LoginLimiter.ts"
import { changing, named } from "./OperatorChange.ts"
import type { Paging } from "./Sessions.ts"
import { endNamed, listOf, liveNow } from "./Sessions.ts"

/* Lets admins and the command line see and end other operators' sessions. */

/** Returns an operator's live sessions, newest first. */
export const sessionsOf = Effect.fn("OperatorSessions.sessionsOf")(
  function*(settings: SignInSettings, username: string, paging: Paging) {
    return yield* listOf(settings, (yield* named(username)).id, paging)
  }
)

/** Returns every live session with the name of its operator, newest first. */
export const everySession = Effect.fn("OperatorSessions.everySession")(
  function*(settings: SignInSettings, paging: Paging) {
    const of = yield* liveNow(settings)
    return yield* readForOperator(
      Effect.all({ items: sessions.listEvery({ ...of, ...paging }), total: sessions.countEvery(of) })
    )
  }
)

/**
 * Ends the session of an operator with the given name, or all sessions of the operator. Returns how many sessions
 * ended. Tokens are not sessions.
 */
export const revokeSessions = Effect.fn("OperatorSessions.revokeSessions")(
  function*(operator: Operator, username: string, session?: string) {
    const done = yield* changing(operator, username, (target) =>
      Effect.gen(function*() {
        const ended = yield* session === undefined
          ? sessions.endAllOf(target.id)
          : endNamed(target.id, session)
        const scope = session === undefined ? "operator" as const : "one" as const
        const detail = { target: target.username, scope, sessions: ended }
        if (ended > 0) yield* audit.insert({ event: "session_revoked", ...actorOf(operator), detail })
        return { target_username: target.username, sessions: ended }
      }))
    yield* emit("admin_operator_session_revoked", { ...actorFields(operator), ...done })
    return done.sessions
  },
  Effect.uninterruptible
)

/** Ends the sessions of all operators. Returns how many sessions ended. */
export const revokeEverySession = Effect.fn("OperatorSessions.revokeEverySession")(function*(operator: AtKeyboard) {
  const ended = yield* transaction(Effect.tap(sessions.endEvery, (count) =>
    count === 0 ? Effect.void : audit.insert({
      event: "session_revoked",
      ...actorOf(operator),
      detail: { scope: "all", sessions: count }
    })))
  yield* emit("admin_session_revoked", { ...actorFields(operator), sessions: ended })
  return ended
}, Effect.uninterruptible)

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { BadRequest } from "../../../domain/OperatorError.ts"
import { sessionObject } from "../../../operations/operator/identity/OperatorObjects.ts"
import * as sessions from "../../../operations/operator/identity/OperatorSessions.ts"
import { act } from "../Act.ts"
import { Acting, ActingAtKeyboard, Configured, paged } from "../Acting.ts"
import { flag, key, name, optional, or, paging } from "../Field.ts"
import { Int, pageOf } from "../schemas/Common.ts"
import { SessionRow } from "../schemas/OperatorSchemas.ts"
import { username } from "../TextFields.ts"

/* Declares the acts about the sessions of operators, for admins and the command line. */

const named = { username: username("The name of the operator.") }
const Ended = Schema.Struct({ sessions: Int })

const listed = (window: { readonly limit: number; readonly offset: number }, username: string) =>
  Effect.gen(function*() {
    const { admin } = yield* Configured.config
    return yield* paged(
      window,
      (page) => sessions.sessionsOf(admin, username, page),
      (session) => sessionObject({ ...session, username })
    )
  })

/** Lists the sessions of an operator. */
export const listSessionsOf = act({
  id: "listSessionsOf",
  does: "List the sessions of an operator",
  access: "admin",
  input: { ...named, ...paging },
  output: pageOf(SessionRow),
  errors: [],
  run: ({ username, ...window }) => listed(window, username),
  http: { route: "GET /api/operators/{username}/sessions" }
})

/** Lists the sessions of all operators or of one operator. */
export const listEverySession = act({
  id: "listEverySession",
  does: "List live sessions, newest first",
  access: "admin",
  input: { user: optional(username("Only the sessions of this operator.")), ...paging },
  output: pageOf(SessionRow),
  errors: [],
  run: ({ user, ...window }) =>
    user !== undefined ? listed(window, user) : Effect.gen(function*() {
      const { admin } = yield* Configured.config
      return yield* paged(window, (page) => sessions.everySession(admin, page), (session) => sessionObject(session))
    }),
  cli: {
    command: "admin session list",
    example: "admin session list --user olga",
    columns: ({ createdAt, createdIp = "", expiresAt, id, lastSeenAt, state, username = "" }) => ({
      id,
      user: username,
      state,
      began: createdAt,
      "last used": lastSeenAt,
      ends: expiresAt,
      address: createdIp
    })
  }
})

/** Ends a session of an operator. */
export const revokeSessionOf = act({
  id: "revokeSessionOf",
  does: "End a session of an operator",
  access: "admin",
  input: { ...named, id: key("The id of the session.") },
  output: Ended,
  errors: [],
  run: ({ id, username }) =>
    Effect.gen(function*() {
      return { sessions: yield* sessions.revokeSessions(yield* Acting.operator, username, id) }
    }),
  http: { route: "POST /api/operators/{username}/sessions/{id}/revoke", status: 204, isStepUp: true }
})

/** Ends every session of an operator. */
export const revokeSessionsOf = act({
  id: "revokeSessionsOf",
  does: "End every session of an operator",
  access: "admin",
  input: named,
  output: Ended,
  errors: [],
  run: ({ username }) =>
    Effect.gen(function*() {
      return { sessions: yield* sessions.revokeSessions(yield* Acting.operator, username) }
    }),
  http: { route: "POST /api/operators/{username}/sessions/revoke", status: 204, isStepUp: true }
})

/** Ends one session of an operator, all sessions of an operator, or all sessions of all operators. */
export const revokeSessions = act({
  id: "revokeSessions",
  does: "End sessions; tokens remain",
  access: "admin",
  input: {
    user: optional(username("Only the sessions of this operator.")),
    session: optional(name("Only this session of the operator, by its id.")),
    all: or(flag("The sessions of every operator."), false)
  },
  output: Ended,
  errors: [],
  fits: ({ all, session, user }) =>
    all === (user === undefined) && !(all && session !== undefined)
      ? Effect.void
      : new BadRequest({ detail: "Give user NAME, user NAME with session ID, or all; exactly one of these." }),
  run: ({ session, user }) =>
    Effect.gen(function*() {
      const operator = yield* ActingAtKeyboard
      const ended = yield* user === undefined
        ? sessions.revokeEverySession(operator)
        : sessions.revokeSessions(operator, user, session)
      return { sessions: ended }
    }),
  cli: {
    command: "admin session revoke",
    example: "admin session revoke --user olga",
    confirm: ({ all }) => Effect.succeed(all ? "End the sessions of every operator?" : undefined),
    text: ({ sessions }) => `${sessions} session(s) ended.`
  }
})

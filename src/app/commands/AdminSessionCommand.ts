import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { sessionObject } from "../../operations/operators/OperatorObjects.ts"
import * as sessions from "../../operations/operators/OperatorSessions.ts"
import type { Page } from "../../surfaces/cli/Detail.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, optionalText, pageOptions, switchFlag } from "./Flags.ts"
import { userOption, withOperators } from "./OperatorInput.ts"
import { print } from "./Print.ts"

const list = command(
  "list",
  "List live sessions, newest first. Example: acme-svc admin session list --user olga. Exit codes: 0, 1, 3.",
  { user: userOption, ...pageOptions, json: jsonOption },
  ({ json, limit, offset, user }) =>
    withOperators(Effect.gen(function*() {
      const { admin } = yield* Settings.forRecords
      const paging = { limit, offset }
      const { items, total } = user === undefined
        ? yield* sessions.everySession(admin, paging)
        : yield* sessions.sessionsOf(admin, user, paging)
      const page: Page<ReturnType<typeof sessionObject>> = {
        items: items.map((session) => sessionObject(user === undefined ? session : { ...session, username: user })),
        total,
        ...paging
      }
      yield* print(json, page, () =>
        renderTable(
          ["id", "user", "state", "began", "last used", "ends", "address"],
          page.items.map(({ createdAt, createdIp = "", expiresAt, id, lastSeenAt, state, username = "" }) => [
            id,
            username,
            state,
            createdAt,
            lastSeenAt,
            expiresAt,
            createdIp
          ]),
          total
        ))
    }))
)

const oneForm = new CommandFailed({
  code: 2,
  message: "Give --user NAME, --user NAME with --session ID, or --all; exactly one of these."
})

const revoke = command(
  "revoke",
  "End sessions; tokens remain. Example: acme-svc admin session revoke --user olga. Exit codes: 0, 1, 2, 3.",
  {
    user: userOption,
    session: optionalText("session", "Only this session of the operator, by its id."),
    all: switchFlag("all", "The sessions of every operator.")
  },
  ({ all, session, user }) => {
    if (all ? user !== undefined || session !== undefined : user === undefined) return oneForm
    return withOperators(Effect.gen(function*() {
      const operator = yield* Operator
      if (user === undefined) yield* Confirmation.ask("End the sessions of every operator?")
      const ended = user === undefined
        ? yield* sessions.revokeEverySession(operator)
        : yield* sessions.revokeSessions(operator, user, session)
      yield* Console.log(`${ended} session(s) ended.`)
    }))
  }
)

/** `admin session`: the sessions of operators. */
export const sessionCommand = Command.make("session").pipe(
  Command.withDescription("Sessions of operators."),
  Command.withSubcommands([list, revoke])
)

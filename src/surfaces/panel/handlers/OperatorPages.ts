import * as Effect from "effect/Effect"
import { BadRequest, NoSuch } from "../../../domain/OperatorError.ts"
import { operatorRoles } from "../../../domain/OperatorRole.ts"
import type { Operator } from "../../../operations/Operator.ts"
import type { SessionIdentity } from "../../../operations/operators/Identity.ts"
import { operatorDetailObject, operatorObject, sessionObject } from "../../../operations/operators/OperatorObjects.ts"
import * as operators from "../../../operations/operators/Operators.ts"
import * as operatorSessions from "../../../operations/operators/OperatorSessions.ts"
import * as tokens from "../../../operations/operators/Tokens.ts"
import { wordOf } from "../../../operations/RecordFilters.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import type { UserStatus } from "../../../store/operators/Users.ts"
import type { Failure } from "../../admin/Failures.ts"
import type { Filter } from "../Listing.ts"
import { filtersIn, listView, windowOf } from "../Listing.ts"
import { field } from "../PanelForm.ts"
import { orRefused } from "../PanelLists.ts"
import type { Given } from "../Route.ts"
import { forRole, moved, operatorIn, page } from "../Route.ts"
import { afterPassword } from "../StepUpPage.ts"
import { mint, tokensView } from "../TokenList.ts"

/* Operators, for admins. Every change asks for the password of the sender. */

const statuses: ReadonlyArray<UserStatus> = ["active", "disabled"]
const filters: ReadonlyArray<Filter> = [
  { name: "status", label: "Status", kind: "choice", words: statuses },
  { name: "role", label: "Role", kind: "choice", words: operatorRoles }
]
const names = ["status", "role"] as const
/** As many sessions are shown; older ones are listed at the command line. */
const mostSessions = 25

/** The routes of operators. */
export const operatorRoutes = (config: Config) => {
  const at = (username: string, done: string) => moved(`/ui/operators/${username}?done=${done}`)

  /** A form on the page of an operator. */
  const change = <E extends Failure, R>(
    act: string,
    done: string,
    run: (by: Operator, username: string, given: Given<SessionIdentity>) => Effect.Effect<unknown, E, R>
  ) =>
    forRole("admin")("POST", `/ui/operators/{username}/${act}`, (given) => {
      const { username = "" } = given.parameters
      return Effect.as(afterPassword(config, given, run(operatorIn(given), username, given)), at(username, done))
    })

  return [
    forRole("admin")("GET", "/ui/operators", ({ query }) =>
      Effect.gen(function*() {
        const given = filtersIn(query, names)
        const found = yield* orRefused(Effect.gen(function*() {
          const status = yield* wordOf("status", statuses, given.status)
          return yield* operators.list(
            { status, role: yield* wordOf("role", operatorRoles, given.role) },
            windowOf(query, config)
          )
        }))
        return page("operators", "Operators", {
          rows: found.items.map(operatorObject),
          problem: found.problem,
          list: listView("/ui/operators", query, filters, {
            total: found.total,
            limit: windowOf(query, config).limit,
            shown: found.items.length
          })
        }, found.problem === undefined ? {} : { status: found.problem.status })
      })),
    forRole("admin")(
      "GET",
      "/ui/operators/{username}",
      ({ parameters: { username = "" }, query, sender }) =>
        Effect.gen(function*() {
          const shown = operatorDetailObject(yield* operators.show(config.admin, username))
          const sessions = yield* operatorSessions.sessionsOf(config.admin, username, {
            limit: mostSessions,
            offset: 0
          })
          return page("operator", `Operator ${shown.username}`, {
            operator: shown,
            isSelf: shown.username === sender.username,
            sessions: sessions.items.map((one) => sessionObject(one)),
            hiddenSessions: sessions.total - sessions.items.length,
            tokens: yield* tokensView(shown.username, shown.role, `/ui/operators/${shown.username}/tokens`),
            roles: operatorRoles,
            revoking: query.get("revoke") ?? "",
            done: query.get("done") ?? ""
          })
        })
    ),
    change("disable", "disabled", (by, username) => operators.disable(by, username)),
    change("enable", "enabled", (by, username) => operators.enable(by, username)),
    change("reset-factor", "factor-reset", (by, username) => operators.resetTotp(by, username)),
    change("role", "role-changed", (by, username, { form }) =>
      Effect.gen(function*() {
        const role = (yield* wordOf("role", operatorRoles, field(form, "role"))) ??
          (yield* new BadRequest({ detail: "Choose a role." }))
        yield* operators.setRole(by, username, role)
      })),
    change(
      "contact",
      "contact-changed",
      (by, username, { form }) => operators.setContact(by, username, field(form, "contact"))
    ),
    change("sessions/revoke", "sessions-revoked", (by, username) => operatorSessions.revokeSessions(by, username)),
    change(
      "sessions/{id}/revoke",
      "session-revoked",
      (by, username, { parameters: { id = "" } }) => operatorSessions.revokeSessions(by, username, id)
    ),
    change(
      "tokens/{id}/revoke",
      "token-revoked",
      (by, username, { parameters: { id = "" } }) =>
        Effect.gen(function*() {
          const token = yield* tokens.find(id)
          if (token.username !== username) return yield* new NoSuch({ noun: "token", id })
          yield* tokens.revoke(by, id)
        })
    ),
    forRole("admin")("POST", "/ui/operators/{username}/tokens", (given) => {
      const { username = "" } = given.parameters
      return mint(config, given, username, `/ui/operators/${username}`)
    })
  ]
}

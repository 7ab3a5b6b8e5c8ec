import * as Effect from "effect/Effect"
import type { OperatorError } from "../../../domain/OperatorError.ts"
import { operatorRoles } from "../../../domain/OperatorRole.ts"
import { operatorStatuses } from "../../../domain/OperatorStatus.ts"
import type { StorageFailed } from "../../../engine/sql/Database.ts"
import type { SessionIdentity } from "../../../operations/operator/identity/Identity.ts"
import { sessionObject } from "../../../operations/operator/identity/OperatorObjects.ts"
import * as operatorSessions from "../../../operations/operator/identity/OperatorSessions.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import {
  changeContact,
  changeRole,
  disableOperator,
  enableOperator,
  listOperators,
  readOperator
} from "../../operator/acts/OperatorActs.ts"
import { resetSecondFactor } from "../../operator/acts/OperatorFactorActs.ts"
import { revokeSessionOf, revokeSessionsOf } from "../../operator/acts/OperatorSessionActs.ts"
import type { Filter } from "../Listing.ts"
import { listView, windowOf } from "../Listing.ts"
import { looked, submitted } from "../PanelActs.ts"
import { orRefused } from "../PanelLists.ts"
import type { Given } from "../Route.ts"
import { forRole, moved, page } from "../Route.ts"
import { mint, revoked, tokensView } from "../TokenList.ts"

/* The pages about operators, for admins. Every change requires the sender's password. */

const filters: ReadonlyArray<Filter> = [
  { name: "status", label: "Status", kind: "choice", words: operatorStatuses },
  { name: "role", label: "Role", kind: "choice", words: operatorRoles }
]
/** The highest number of sessions that the page shows. The command line lists older sessions. */
const mostSessions = 25

/** Makes the route of a form on the page of an operator. */
const change = <E extends OperatorError | StorageFailed, R>(
  path: string,
  done: string,
  run: (given: Given<SessionIdentity>) => Effect.Effect<unknown, E, R>
) =>
  forRole("admin")(
    "POST",
    `/ui/operators/{username}/${path}`,
    (given) => Effect.as(run(given), moved(`/ui/operators/${given.parameters["username"] ?? ""}?done=${done}`))
  )

/** Returns the routes of the pages about operators. */
export const operatorRoutes = (config: Config) => [
  forRole("admin")("GET", "/ui/operators", (given) =>
    Effect.gen(function*() {
      const { query } = given
      const { items, problem, total } = yield* orRefused(looked(listOperators, given))
      return page("operators", "Operators", {
        rows: items,
        problem,
        list: listView("/ui/operators", query, filters, {
          total,
          limit: windowOf(query, config).limit,
          shown: items.length
        })
      }, problem === undefined ? {} : { status: problem.status })
    })),
  forRole("admin")("GET", "/ui/operators/{username}", (given) =>
    Effect.gen(function*() {
      const { query, sender } = given
      const shown = yield* looked(readOperator, given)
      const sessions = yield* operatorSessions.sessionsOf(config.admin, shown.username, {
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
    })),
  change("disable", "disabled", (given) => submitted(disableOperator, given)),
  change("enable", "enabled", (given) => submitted(enableOperator, given)),
  change("reset-factor", "factor-reset", (given) => submitted(resetSecondFactor, given)),
  change("role", "role-changed", (given) => submitted(changeRole, given)),
  change("contact", "contact-changed", (given) => submitted(changeContact, given)),
  change("sessions/revoke", "sessions-revoked", (given) => submitted(revokeSessionsOf, given)),
  change("sessions/{id}/revoke", "session-revoked", (given) => submitted(revokeSessionOf, given)),
  change("tokens/{id}/revoke", "token-revoked", (given) => revoked(given, given.parameters["username"] ?? "")),
  forRole("admin")("POST", "/ui/operators/{username}/tokens", (given) => {
    const { username = "" } = given.parameters
    return mint(given, username, `/ui/operators/${username}`)
  })
]

import { Effect } from "effect"
import { tokenLife } from "../../domain/ApiToken.ts"
import { BadRequest } from "../../domain/OperatorError.ts"
import type { OperatorRole } from "../../domain/OperatorRole.ts"
import { operatorRoles, permits } from "../../domain/OperatorRole.ts"
import { currentSeconds } from "../../kernel/Time.ts"
import type { SessionIdentity } from "../../operations/operators/Identity.ts"
import { tokenObject } from "../../operations/operators/OperatorObjects.ts"
import * as tokens from "../../operations/operators/Tokens.ts"
import type { Config } from "../../settings/AppConfig.ts"
import { field } from "./Form.ts"
import type { Given } from "./Route.ts"
import { operatorIn, page } from "./Route.ts"
import { afterPassword } from "./StepUp.ts"

/* The tokens of an operator, on their own page and on the one that admins see of them. */

/** As many are shown; older ones are revoked or at their end. */
const most = 100

/** The tokens of an operator, and what the form for a new one offers. `base` is the path that forms are sent to. */
export const tokensView = Effect.fnUntraced(function*(username: string, role: OperatorRole, base: string) {
  const now = yield* currentSeconds
  const { items, total } = yield* tokens.list(username, { limit: most, offset: 0 })
  return {
    base,
    rows: items.map((token) => ({
      ...tokenObject(token),
      state: token.revokedAt !== undefined ? "revoked" : token.expiresAt <= now ? "expired" : "valid"
    })),
    hidden: total - items.length,
    roles: operatorRoles.filter((one) => permits(role, one)),
    life: tokenLife
  }
})

const roleIn = (text: string | undefined): Effect.Effect<OperatorRole, BadRequest> => {
  const role = operatorRoles.find((one) => one === text)
  return role === undefined ? new BadRequest({ detail: "The role is none of the list." }) : Effect.succeed(role)
}

/** Makes a token and answers the page that shows it, which is the only one that ever does. */
export const mint = (config: Pick<Config, "admin">, given: Given<SessionIdentity>, username: string, back: string) =>
  afterPassword(
    config,
    given,
    Effect.gen(function*() {
      const { form } = given
      const made = yield* tokens.create(operatorIn(given), {
        username,
        name: form.get("name") ?? "",
        role: yield* roleIn(field(form, "role")),
        expiresInDays: Number(field(form, "expiresInDays") ?? Number.NaN),
        allowedAddresses: (field(form, "allowedAddresses") ?? "").split(/[\s,]+/).filter((one) => one !== "")
      })
      return page("token", "Token", { token: made.token, made: tokenObject(made.record), back })
    })
  )

import * as Effect from "effect/Effect"
import { tokenLife } from "../../domain/ApiToken.ts"
import { BadRequest } from "../../domain/OperatorError.ts"
import type { OperatorRole } from "../../domain/OperatorRole.ts"
import { operatorRoles, permits } from "../../domain/OperatorRole.ts"
import { currentSeconds } from "../../kernel/Time.ts"
import type { SessionIdentity } from "../../operations/operators/Identity.ts"
import { tokenObject } from "../../operations/operators/OperatorObjects.ts"
import * as tokens from "../../operations/operators/Tokens.ts"
import type { Config } from "../../settings/AppConfig.ts"
import { field } from "./PanelForm.ts"
import type { Given } from "./Route.ts"
import { operatorIn, page } from "./Route.ts"
import { afterPassword } from "./StepUpPage.ts"

/* The tokens of an operator, for the operator's own page and for the page that admins see. */

/** The most tokens that a page shows, newest first. */
const most = 25

/** The tokens of an operator, and the choices of the form for a new one. Forms are sent to paths below `base`. */
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

/** Creates a token and returns the page that shows its text. No other page ever shows it. */
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

import * as Effect from "effect/Effect"
import { tokenLife } from "../../domain/ApiToken.ts"
import { NoSuch } from "../../domain/OperatorError.ts"
import type { OperatorRole } from "../../domain/OperatorRole.ts"
import { operatorRoles, permits } from "../../domain/OperatorRole.ts"
import { readUsername } from "../../domain/Username.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { SessionIdentity } from "../../operations/operator/identity/Identity.ts"
import { tokenObject } from "../../operations/operator/identity/OperatorObjects.ts"
import * as tokens from "../../operations/operator/identity/Tokens.ts"
import { createToken, revokeToken } from "../operator/acts/TokenActs.ts"
import { submitted } from "./PanelActs.ts"
import type { Given } from "./Route.ts"
import { page } from "./Route.ts"

/* The tokens of an operator. Both the operator's own page and the page that admins see show them. */

/** The highest number of tokens that a page shows, newest first. */
const most = 25

/**
 * Returns the tokens of an operator, and the choices in the form for a new token. The forms are sent to paths below
 * `base`.
 */
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

/** Returns a form with one address on each line, because people also write several addresses on one line. */
const withLines = (form: URLSearchParams): URLSearchParams => {
  const lined = new URLSearchParams(form)
  const addresses = form.get("allowedAddresses")
  if (addresses !== null) lined.set("allowedAddresses", addresses.replaceAll(/[\s,]+/g, "\n"))
  return lined
}

/** Creates a token and returns the page that shows its text. No other page ever shows this text. */
export const mint = (given: Given<SessionIdentity>, user: string, back: string) =>
  Effect.map(
    submitted(createToken, { form: withLines(given.form), parameters: { user } }),
    ({ token, ...made }) => page("token", "Token", { token, made, back })
  )

/**
 * Revokes a token on the page of its owner. The password may be in the form, because an operator's own template may
 * still ask for it.
 */
export const revoked = Effect.fnUntraced(function*(given: Given<SessionIdentity>, owner: string) {
  const { id = "" } = given.parameters
  const { username } = yield* tokens.find(id)
  if (username !== readUsername(owner)) return yield* new NoSuch({ noun: "token", id })
  return yield* submitted(revokeToken, given, ["password"])
})

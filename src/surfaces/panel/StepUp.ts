import { Effect, Redacted } from "effect"
import type { SessionIdentity } from "../../operations/operators/Identity.ts"
import { stepUp } from "../../operations/operators/StepUp.ts"
import type { Config } from "../../settings/AppConfig.ts"
import { secret } from "./Form.ts"
import type { Given } from "./Route.ts"
import { requesterOf } from "./Route.ts"

/** The password that a form asks of whoever sends it. */
export const passwordIn = ({ form }: Pick<Given, "form">): Redacted.Redacted<string> =>
  Redacted.make(secret(form, "password"))

/** Runs an effect once the sender has proved their password (docs/decisions/admin.md, "Operators"). */
export const afterPassword = <A, E, R>(
  { admin }: Pick<Config, "admin">,
  given: Given<SessionIdentity>,
  act: Effect.Effect<A, E, R>
) => Effect.zipRight(stepUp(admin, given.sender, passwordIn(given), requesterOf(given)), act)

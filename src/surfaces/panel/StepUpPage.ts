import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { SessionIdentity } from "../../operations/operators/Identity.ts"
import { stepUp } from "../../operations/operators/StepUp.ts"
import type { Config } from "../../settings/AppConfig.ts"
import { secret } from "./PanelForm.ts"
import type { Given } from "./Route.ts"
import { requesterOf } from "./Route.ts"

/** The sender's password, from the form. */
export const passwordIn = ({ form }: Pick<Given, "form">): Redacted.Redacted<string> =>
  Redacted.make(secret(form, "password"))

/** Compares the sender's password, then runs an effect (docs/decisions/admin.md, "Operators"). */
export const afterPassword = <A, E, R>(
  { admin }: Pick<Config, "admin">,
  given: Given<SessionIdentity>,
  act: Effect.Effect<A, E, R>
) => Effect.andThen(stepUp(admin, given.sender, passwordIn(given), requesterOf(given)), act)

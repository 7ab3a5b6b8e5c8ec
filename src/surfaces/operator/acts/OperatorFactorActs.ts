import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as operators from "../../../operations/operator/identity/Operators.ts"
import { act } from "../Act.ts"
import { Acting, ActingAtKeyboard } from "../Acting.ts"
import { RecoveryCodes, SecondFactor } from "../schemas/OperatorSchemas.ts"
import { username } from "../TextFields.ts"

/* Declares the acts about the second factors of operators, for admins and the command line. */

const named = { username: username("The name of the operator.") }

/** Removes the second factor of an operator. */
export const resetSecondFactor = act({
  id: "resetSecondFactor",
  does: "Remove an operator's second factor, and end their sessions",
  access: "admin",
  input: named,
  output: Schema.Struct({ username: Schema.String, removed: Schema.Boolean }),
  errors: ["self_target"],
  run: ({ username }) =>
    Effect.gen(function*() {
      return { username, removed: yield* operators.resetTotp(yield* Acting.operator, username) }
    }),
  http: { route: "POST /api/operators/{username}/totp/reset", status: 204, isStepUp: true },
  cli: {
    command: "admin user totp reset",
    help:
      "Remove an operator's second factor. If admin.require_mfa is true, the operator enrols a new one at the next sign-in.",
    example: "admin user totp reset olga",
    confirm: ({ username }) =>
      Effect.map(operators.totpStatus(username), ({ enrolmentPending, totpEnabled }) =>
        totpEnabled || enrolmentPending
          ? `Remove the second factor of ${username} and the recovery codes?`
          : undefined),
    text: ({ removed, username }) =>
      removed ? "The second factor was removed, and the sessions have ended." : `${username} has no second factor.`
  }
})

/** Says whether an operator has a second factor. */
export const readSecondFactorOf = act({
  id: "readSecondFactorOf",
  does: "Say whether an operator has a second factor",
  access: "admin",
  input: named,
  output: SecondFactor,
  errors: [],
  run: ({ username }) => operators.totpStatus(username),
  cli: { command: "admin user totp status", example: "admin user totp status olga", args: ["username"] }
})

/** Replaces the recovery codes of an operator. */
export const renewRecoveryCodes = act({
  id: "renewRecoveryCodes",
  does: "Replace an operator's recovery codes; the new codes are printed only once",
  access: "admin",
  input: named,
  output: RecoveryCodes,
  errors: ["mfa_not_enrolled"],
  run: ({ username }) =>
    Effect.gen(function*() {
      return { recoveryCodes: yield* operators.renewCodes(yield* ActingAtKeyboard, username) }
    }),
  cli: {
    command: "admin user totp recovery-codes",
    example: "admin user totp recovery-codes olga",
    args: ["username"],
    text: ({ recoveryCodes }) => recoveryCodes.join("\n"),
    remark: () => "The codes are shown only now; earlier codes are void.",
    ifLost: { outcome: "nobody has the new codes, and earlier codes are void" }
  }
})

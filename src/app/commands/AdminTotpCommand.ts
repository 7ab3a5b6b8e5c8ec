import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as operators from "../../operations/operators/Operators.ts"
import { renderDetail } from "../../surfaces/cli/Detail.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { command } from "./Descriptor.ts"
import { jsonOption } from "./Flags.ts"
import { nameArgument, withOperators } from "./OperatorInput.ts"
import { print } from "./Print.ts"

const status = command(
  "status",
  "Say whether an operator has a second factor. Example: acme-svc admin user totp status olga. Exit codes: 0, 1, 3.",
  { name: nameArgument, json: jsonOption },
  ({ json, name }) =>
    withOperators(Effect.gen(function*() {
      const object = yield* operators.totpStatus(name)
      yield* print(json, object, () => renderDetail(object))
    }))
)

const reset = command(
  "reset",
  "Remove an operator's second factor; with admin.require_mfa the next sign-in enrols a new one. Example: acme-svc admin user totp reset olga. Exit codes: 0, 1, 2, 3.",
  { name: nameArgument },
  ({ name }) =>
    withOperators(Effect.gen(function*() {
      const { enrolmentPending, totpEnabled } = yield* operators.totpStatus(name)
      if (!totpEnabled && !enrolmentPending) return yield* Console.log(`${name} has no second factor.`)
      yield* Confirmation.ask(`Remove the second factor of ${name} and the recovery codes?`)
      yield* operators.resetTotp(yield* Operator, name)
      yield* Console.log("The second factor was removed, and the sessions have ended.")
    }))
)

const recoveryCodes = command(
  "recovery-codes",
  "Replace an operator's recovery codes; they are printed only once. Example: acme-svc admin user totp recovery-codes olga. Exit codes: 0, 1, 3.",
  { name: nameArgument },
  ({ name }) =>
    withOperators(Effect.gen(function*() {
      const codes = yield* operators.renewCodes(yield* Operator, name)
      yield* Console.log(codes.join("\n"))
      yield* Console.error("The codes are shown only now; earlier codes are void.")
    }))
)

/** `admin user totp`: second factors. */
export const totpCommand = Command.make("totp").pipe(
  Command.withDescription("Second factors; operators enrol them in the browser."),
  Command.withSubcommands([status, reset, recoveryCodes])
)

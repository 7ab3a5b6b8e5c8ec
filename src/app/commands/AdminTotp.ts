import { Command } from "@effect/cli"
import { Console, Effect } from "effect"
import { MfaNotEnrolled } from "../../domain/OperatorError.ts"
import * as operators from "../../operations/operators/Operators.ts"
import { renderDetail } from "../../surfaces/cli/Detail.ts"
import { Confirmation } from "../Confirmation.ts"
import { Operator } from "../Operator.ts"
import { jsonOption } from "./Flags.ts"
import { nameArgument, withOperators } from "./Operators.ts"
import { print } from "./Print.ts"

const status = Command.withDescription(
  Command.make(
    "status",
    { name: nameArgument, json: jsonOption },
    ({ json, name }) =>
      withOperators(Effect.gen(function*() {
        const object = yield* operators.totpStatus(name)
        yield* print(json, object, () => renderDetail(object))
      }))
  ),
  "Say whether an operator has a second factor. Example: acme-svc admin user totp status olga. Exit codes: 0, 1, 3."
)

const reset = Command.withDescription(
  Command.make("reset", { name: nameArgument }, ({ name }) =>
    withOperators(Effect.gen(function*() {
      const { enrolmentPending, totpEnabled } = yield* operators.totpStatus(name)
      if (!totpEnabled && !enrolmentPending) return yield* new MfaNotEnrolled()
      yield* Confirmation.ask(`Take the second factor of ${name} away, with the recovery codes?`)
      yield* operators.resetTotp(yield* Operator, name)
      yield* Console.log("The second factor is gone, and sessions have ended.")
    }))),
  "Take an operator's second factor away; a new one is enrolled at the next sign-in. Example: acme-svc admin user totp reset olga. Exit codes: 0, 1, 2, 3."
)

const recoveryCodes = Command.withDescription(
  Command.make("recovery-codes", { name: nameArgument }, ({ name }) =>
    withOperators(Effect.gen(function*() {
      const codes = yield* operators.renewCodes(yield* Operator, name)
      yield* Console.log(codes.join("\n"))
      yield* Console.error("The codes are shown this once; those before them are void.")
    }))),
  "Make an operator's recovery codes anew; they are printed once. Example: acme-svc admin user totp recovery-codes olga. Exit codes: 0, 1, 3."
)

/** `admin user totp`: second factors. */
export const totpCommand = Command.withDescription(
  Command.make("totp").pipe(Command.withSubcommands([status, reset, recoveryCodes])),
  "Second factors; one is enrolled in the browser."
)

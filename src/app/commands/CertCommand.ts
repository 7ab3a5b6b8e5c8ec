import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { OperatorError } from "../../domain/OperatorError.ts"
import type { StorageFailed } from "../../kernel/sql/Database.ts"
import * as orders from "../../operations/order/OrderRecords.ts"
import { findBySerial } from "../../operations/order/Serials.ts"
import { CommandFailed, refusedFor } from "../CommandFailed.ts"
import { Operator } from "../CommandOperator.ts"
import { withRecords } from "../Records.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { reasonOption, serialArgument } from "./Flags.ts"
import type { Begun } from "./Revoking.ts"
import { awaitEnds, begunText, waitOption } from "./Revoking.ts"

/** Keeps a refusal, and goes on. A failure of the database ends the command. */
const keeping =
  (faults: Array<CommandFailed>, about = "") => <A, R>(self: Effect.Effect<A, OperatorError | StorageFailed, R>) =>
    Effect.catch(self, (error) => {
      if (error._tag === "StorageFailed") return Effect.fail(error)
      const { code, message } = refusedFor(error)
      return Effect.sync(() => void faults.push(new CommandFailed({ code, message: about + message })))
    })

/** One failure for several, with the code of those that another try may mend if there are any. */
const together = (faults: ReadonlyArray<CommandFailed>, others: ReadonlyArray<string> = []): CommandFailed =>
  new CommandFailed({
    code: faults.some(({ code }) => code === 1) ? 1 : 3,
    message: [...faults.map(({ message }) => message), ...others].join("\n")
  })

/** The order of each serial number. If one cannot be found, nothing is revoked. */
const ordersOf = Effect.fnUntraced(function*(serials: ReadonlyArray<string>) {
  const faults: Array<CommandFailed> = []
  const found: Array<{ readonly serial: string; readonly id: string }> = []
  for (const serial of serials) {
    yield* findBySerial(serial).pipe(Effect.map(({ id }) => void found.push({ serial, id })), keeping(faults))
  }
  if (faults.length === 0) return found
  return yield* together(faults, serials.length > 1 ? ["No certificate was revoked."] : [])
})

const revokeCommand = command(
  "revoke",
  "Revoke certificates by their serial numbers. If one of them is unknown, none is revoked. Example: acme-svc cert revoke 4A:1B:90:C2 --reason keyCompromise --wait 10. Exit codes: 0, 1, 2, 3 one is unknown or was revoked before.",
  {
    serials: serialArgument.pipe(Argument.atLeast(1)),
    reason: reasonOption,
    wait: waitOption
  },
  ({ reason, serials, wait }) =>
    withRecords(Effect.gen(function*() {
      // A refused configuration is not the one that is served, so it says nothing of who signs for the profile.
      const served = Option.getOrUndefined(yield* Effect.option(Settings.loaded))
      const operator = yield* Operator
      const begun: Array<Begun> = []
      const faults: Array<CommandFailed> = []
      // What is refused for one certificate says nothing about the others.
      for (const { id, serial } of yield* ordersOf([...new Set(serials)])) {
        yield* orders.revoke(served?.config, operator, id, reason).pipe(
          Effect.flatMap((done) => {
            begun.push(done)
            return Console.log(`${serial}: ${begunText(done)}`)
          }),
          keeping(faults, `${serial}: `)
        )
      }
      yield* awaitEnds(begun, wait)
      if (faults.length > 0) return yield* together(faults)
    }))
)

/** `cert`: certificates by their serial numbers. */
export const certCommand = Command.make("cert").pipe(
  Command.withDescription("Certificates by their serial numbers."),
  Command.withSubcommands([revokeCommand])
)

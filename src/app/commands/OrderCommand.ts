import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { NoSuch } from "../../domain/OperatorError.ts"
import { currentSeconds } from "../../kernel/Time.ts"
import { orderDetailObject } from "../../operations/Objects.ts"
import * as orders from "../../operations/order/OrderRecords.ts"
import { renderOrder } from "../../surfaces/cli/OrderText.ts"
import { Operator } from "../CommandOperator.ts"
import { withRecords } from "../Records.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, reasonOption } from "./Flags.ts"
import { listCommand } from "./OrderListCommand.ts"
import { deleteCommand, exportCommand, purgeCommand } from "./OrderRemovalCommand.ts"
import { orphanedCommand } from "./OrphanListCommand.ts"
import { print } from "./Print.ts"
import { awaitEnds, begunText, waitOption } from "./Revoking.ts"

const idArgument = Argument.String("id").pipe(Argument.withDescription("The order's id."))

const showCommand = command(
  "show",
  "Show an order, its authorizations and jobs, and why it failed. Example: acme-svc order show ID. Exit codes: 0, 1, 3.",
  { id: idArgument, json: jsonOption },
  ({ id, json }) =>
    withRecords(
      Effect.gen(function*() {
        const config = yield* Settings.forRecords
        const object = orderDetailObject(config, yield* orders.detail(config, id), yield* currentSeconds)
        yield* print(json, object, () => renderOrder(object))
      })
    )
)

const chainCommand = command(
  "chain",
  "Print the certificate chain of an order as PEM. Example: acme-svc order chain ID. Exit codes: 0, 1, 3.",
  { id: idArgument },
  ({ id }) =>
    withRecords(
      Effect.flatMap(orders.chain(id), (pem) => Console.log(pem.trimEnd()))
    )
)

const revokeCommand = command(
  "revoke",
  "Revoke the certificate of an order. Example: acme-svc order revoke ID --reason superseded --wait 10. Exit codes: 0, 1, 2, 3.",
  { id: idArgument, reason: reasonOption, wait: waitOption },
  ({ id, reason, wait }) =>
    withRecords(Effect.gen(function*() {
      // A refused configuration is not the one that is served, so it says nothing of who signs for the profile.
      const served = Option.getOrUndefined(yield* Effect.option(Settings.loaded))
      const begun = yield* orders.revoke(served?.config, yield* Operator, id, reason).pipe(
        Effect.catchTag("NoSuch", (error) =>
          error.hint === undefined
            ? error
            : new NoSuch({ ...error, hint: `${error.hint} The command cert revoke takes serial numbers.` }))
      )
      yield* Console.log(begunText(begun))
      yield* awaitEnds([begun], wait)
    }))
)

/** `order`: orders and their certificates. */
export const orderCommand = Command.make("order").pipe(
  Command.withDescription("Orders and their certificates."),
  Command.withSubcommands([
    listCommand,
    showCommand,
    chainCommand,
    revokeCommand,
    orphanedCommand,
    deleteCommand,
    exportCommand,
    purgeCommand
  ])
)

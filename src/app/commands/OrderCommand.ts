import * as Argument from "effect/cli/Argument"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as orders from "../../operations/operator/OrderRecords.ts"
import { expiringActs } from "../../surfaces/operator/acts/ExpiringActs.ts"
import { orderActs } from "../../surfaces/operator/acts/OrderActs.ts"
import { orphanActs } from "../../surfaces/operator/acts/OrphanActs.ts"
import { withRecords } from "../Records.ts"
import { actCommand } from "./ActCommand.ts"
import { command } from "./Descriptor.ts"
import { listCommand } from "./OrderListCommand.ts"
import { purgeCommand } from "./PurgeCommand.ts"

const chainCommand = command(
  "chain",
  "Print the certificate chain of an order as PEM. Example: acme-svc order chain ID. Exit codes: 0, 1, 3.",
  { id: Argument.String("id").pipe(Argument.withDescription("The order's id.")) },
  ({ id }) =>
    withRecords(
      Effect.flatMap(orders.chain(id), (pem) => Console.log(pem.trimEnd()))
    )
)

/** `order`: orders and their certificates. */
export const orderCommand = actCommand(
  { ...orderActs, acts: [...orderActs.acts, ...expiringActs.acts, ...orphanActs.acts] },
  "order",
  {
    order: [listCommand, chainCommand, purgeCommand]
  }
)

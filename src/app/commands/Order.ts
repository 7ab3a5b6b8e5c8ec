import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { shown } from "../../domain/JobFailure.ts"
import { settledJob } from "../../kernel/queue/Waits.ts"
import { currentSeconds } from "../../kernel/Time.ts"
import { orderDetailObject } from "../../operations/Objects.ts"
import * as orders from "../../operations/order/OrderRecords.ts"
import { renderOrder } from "../../surfaces/cli/Order.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { Operator } from "../Operator.ts"
import { withRecords } from "../Records.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, numberFlag, optional, reasonOption } from "./Flags.ts"
import { listCommand } from "./OrderList.ts"
import { deleteCommand, exportCommand, purgeCommand } from "./OrderRemoval.ts"
import { print } from "./Print.ts"

const idArgument = Argument.String("id").pipe(Argument.withDescription("The order's id."))

const showCommand = command(
  "show",
  "Show an order, its authorizations and jobs, and why it failed. Example: acme-svc order show ID. Exit codes: 0, 1, 3.",
  { id: idArgument, json: jsonOption },
  ({ id, json }) =>
    withRecords(
      Effect.gen(function*() {
        const { config } = yield* Settings.loaded
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

/** The messages for the two ways to revoke, and the default seconds to wait. */
const saidOf = {
  list: {
    begun: (job: string) => `Revoked. Job ${job} signs the revocation list.`,
    ended: "The revocation list is signed.",
    usualWait: 0
  },
  signer: {
    begun: (job: string) => `Job ${job} asks the signer to revoke the certificate.`,
    ended: "Revoked.",
    usualWait: 30
  }
}

const revokeCommand = command(
  "revoke",
  "Revoke the certificate of an order. Example: acme-svc order revoke ID --reason superseded --wait 10. Exit codes: 0, 1, 2, 3.",
  {
    id: idArgument,
    reason: reasonOption,
    wait: optional(
      numberFlag("wait", { least: 0, most: 86_400, of: "a number of seconds" }),
      "Seconds to wait until the list is signed (default 0) or the signer has answered (default 30)."
    )
  },
  (options) =>
    withRecords(Effect.gen(function*() {
      const { config } = yield* Settings.loaded
      const { isRevoked, job } = yield* orders.revoke(config, yield* Operator, options.id, options.reason)
      const say = isRevoked ? saidOf.list : saidOf.signer
      yield* Console.log(say.begun(job))
      const seconds = options.wait ?? say.usualWait
      if (seconds <= 0) return
      const ended = yield* settledJob(job, seconds * 1000)
      if (ended?.status === "failed" || ended?.status === "cancelled") {
        const why = ended.lastError === undefined ? "" : `: ${shown(ended.lastError)}`
        return yield* new CommandFailed({ code: 1, message: `Job ${ended.id} is ${ended.status}${why}` })
      }
      yield* Console.log(
        ended?.status === "done" || (ended === undefined && isRevoked)
          ? say.ended
          : `Job ${ended?.id ?? job} has not ended yet. Is a worker running?`
      )
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
    deleteCommand,
    exportCommand,
    purgeCommand
  ])
)

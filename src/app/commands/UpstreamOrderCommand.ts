import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { currentSeconds } from "../../kernel/Time.ts"
import { jobObject, upstreamOrderObject } from "../../operations/Objects.ts"
import { upstreamOrderFilters, upstreamStatuses } from "../../operations/RecordFilters.ts"
import * as upstreamOrders from "../../operations/upstream/UpstreamOrders.ts"
import { renderDetail } from "../../surfaces/cli/Detail.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { withRecords } from "../Records.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, optionalText, optionalWord, pageOptions } from "./Flags.ts"
import { print } from "./Print.ts"

const namesOf = (identifiers: ReadonlyArray<{ readonly value: string }>) => identifiers.map(({ value }) => value)

const list = command(
  "list",
  "List relayed orders, newest first. Example: acme-svc upstream order list --status invalid. Exit codes: 0, 1, 3.",
  {
    profile: optionalText("profile", "Only orders of this profile."),
    status: optionalWord("status", upstreamStatuses, "Only orders with this status at the upstream."),
    ...pageOptions,
    json: jsonOption
  },
  ({ json, limit, offset, profile, status }) =>
    withRecords(Effect.gen(function*() {
      const config = yield* Settings.forRecords
      const found = yield* upstreamOrders.list(yield* upstreamOrderFilters({ profile, status }), { limit, offset })
      const now = yield* currentSeconds
      const items = found.items.map((order) => upstreamOrderObject(config, order, now))
      yield* print(json, { items, total: found.total, limit, offset }, () =>
        renderTable(
          ["order", "profile", "upstream", "here", "changed", "names", "error"],
          items.map(({ error, identifiers, localStatus, orderId, profile, status, updatedAt }) => [
            orderId,
            profile,
            status,
            localStatus,
            updatedAt,
            namesOf(identifiers).join(" "),
            error ?? ""
          ]),
          found.total
        ))
    }))
)

const show = command(
  "show",
  "Show a relayed order. Example: acme-svc upstream order show ID. Exit codes: 0, 1, 3.",
  {
    id: Argument.String("order-id").pipe(Argument.withDescription("The id of the order at this service.")),
    json: jsonOption
  },
  ({ id, json }) =>
    withRecords(
      Effect.gen(function*() {
        const config = yield* Settings.forRecords
        const { job, order } = yield* upstreamOrders.find(id)
        const { identifiers, ...shown } = upstreamOrderObject(config, order, yield* currentSeconds)
        const object = { ...shown, identifiers, ...(job === undefined ? {} : { job: jobObject(job) }) }
        yield* print(json, object, () =>
          renderDetail({
            ...shown,
            names: namesOf(identifiers),
            job: job === undefined ? undefined : `${job.id}, ${job.status}`
          }))
      })
    )
)

/** `upstream order`: orders at the upstream. */
export const upstreamOrderCommand = Command.make("order").pipe(
  Command.withDescription("Relayed orders and their state at the upstream."),
  Command.withSubcommands([list, show])
)

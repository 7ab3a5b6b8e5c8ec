import { listExpiring } from "../../surfaces/operator/acts/ExpiringActs.ts"
import { listOrders } from "../../surfaces/operator/acts/OrderActs.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { partsOf } from "./ActCommand.ts"
import { command } from "./Descriptor.ts"

const searching = partsOf(listOrders, {
  ...listOrders.cli,
  command: "order list",
  example: "order list --identifier-suffix example.com"
})

const ending = partsOf(listExpiring, {
  ...listExpiring.cli,
  command: "order list",
  example: "order list --expiring-in 30",
  flags: {
    days: {
      flag: "expiring-in",
      help:
        "Certificates that expire within this many days, 1 to 100000, soonest first. The only other filter is --profile. The same as order expiring."
    }
  },
  spelt: {
    superseded: { hide: ["hide-superseded", "With --expiring-in: leave out certificates that have been replaced."] }
  }
})

const wrong = (message: string) => new CommandFailed({ code: 2, message })

const onlyOfOrders = Object.keys(listOrders.input).filter((member) => !Object.hasOwn(listExpiring.input, member))

/** `order list`: searches orders by their properties. `--expiring-in` is an old form of `order expiring`. */
export const listCommand = command(
  searching.name,
  searching.text,
  { ...searching.parameters, ...ending.parameters },
  (read: { readonly [name: string]: unknown }) => {
    if (read["days"] === undefined) {
      return read["hide-superseded"] === true
        ? wrong("--hide-superseded requires --expiring-in.")
        : searching.run(read)
    }
    return onlyOfOrders.some((member) => read[member] !== undefined)
      ? wrong("With --expiring-in, only --profile, --hide-superseded and paging are allowed.")
      : ending.run(read)
  }
)

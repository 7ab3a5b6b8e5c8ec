import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { orderFilterWords } from "../../domain/Order.ts"
import { currentSeconds } from "../../kernel/Time.ts"
import { expiringObject, orderObject } from "../../operations/Objects.ts"
import * as expiring from "../../operations/order/Expiring.ts"
import * as orders from "../../operations/order/OrderRecords.ts"
import { orderFilters } from "../../operations/RecordFilters.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { CommandFailed, refusedFor } from "../CommandFailed.ts"
import { withRecords } from "../Records.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import {
  checkSpan,
  clampedFlag,
  jsonOption,
  optional,
  optionalText,
  optionalWord,
  pageOptions,
  serialFlag,
  spanOptions,
  switchFlag
} from "./Flags.ts"
import { print } from "./Print.ts"

const folded = (name: string | undefined) => name?.toLowerCase().replace(/\.$/, "")

/** Flags that filter a list of orders. */
export const orderFlags = {
  profile: optionalText("profile", "Only orders of this profile."),
  accountId: optionalText("account-id", "Only orders of this account."),
  status: optionalWord("status", orderFilterWords, "As stored. Revoked are those whose certificate was revoked."),
  identifier: optionalText("identifier", "Only orders with exactly this name, such as *.example.com."),
  suffix: optionalText("identifier-suffix", "Only orders with a name that ends with these labels."),
  contains: optionalText("identifier-contains", "Only orders with a name that contains this text."),
  serial: optional(serialFlag, "Only the order of the certificate with this serial number, in hexadecimal."),
  ...spanOptions
}

interface Filters {
  readonly profile: string | undefined
  readonly accountId: string | undefined
  readonly status: string | undefined
  readonly identifier: string | undefined
  readonly suffix: string | undefined
  readonly contains: string | undefined
  readonly serial: string | undefined
  readonly since: number | undefined
  readonly until: number | undefined
}

interface Paging {
  readonly limit: number
  readonly offset: number
  readonly json: boolean
}

const wrong = (message: string) => new CommandFailed({ code: 2, message })

/** The filters in the form of the search. Faults are found before the database is opened. */
export const searchOf = Effect.fnUntraced(function*(filters: Filters) {
  const { accountId, contains, identifier, serial, since, suffix, until } = filters
  if ([identifier, suffix, contains].filter((one) => one !== undefined).length > 1) {
    return yield* wrong("--identifier, --identifier-suffix and --identifier-contains exclude each other.")
  }
  yield* checkSpan({ since, until })
  const { profile, status } = filters
  const words = yield* Effect.mapError(orderFilters({ profile, status, accountId }), refusedFor)
  return {
    ...words,
    identifier: folded(identifier),
    identifierSuffix: folded(suffix)?.replace(/^\./, ""),
    identifierContains: contains,
    certSerial: serial,
    since,
    until
  }
})

const printOrders = Effect.fnUntraced(function*(
  search: Effect.Success<ReturnType<typeof searchOf>>,
  { json, limit, offset }: Paging
) {
  const config = yield* Settings.forRecords
  const found = yield* orders.list(search, { limit, offset })
  const now = yield* currentSeconds
  const items = found.items.map((order) => orderObject(config, order, now))
  const page = { items, total: found.total, limit, offset, ...(found.truncated ? { truncated: true } : {}) }
  yield* print(json, page, () =>
    renderTable(
      ["id", "profile", "status", "created", "expires", "names"],
      items.map(({ certNotAfter, createdAt, id, identifiers, profile, revokedAt, status }) => [
        id,
        profile,
        revokedAt === undefined ? status : "revoked",
        createdAt,
        certNotAfter ?? "",
        identifiers.map(({ value }) => value).join(" ")
      ]),
      found.total
    ))
  if (found.truncated) yield* Console.error("The search ended early; narrow it by account or time.")
})

const printExpiring = Effect.fnUntraced(function*(
  wanted: { readonly profile: string | undefined; readonly days: number; readonly hideSuperseded: boolean },
  { json, limit, offset }: Paging
) {
  const { hidden, items, total, truncated } = yield* expiring.list(wanted, { limit, offset })
  const objects = items.map(expiringObject)
  const page = { items: objects, total, hidden, days: wanted.days, limit, offset, ...(truncated ? { truncated } : {}) }
  yield* print(json, page, () =>
    renderTable(
      ["id", "profile", "expires", "days", "names", "replaced by"],
      objects.map(({ daysRemaining, identifiers, notAfter, orderId, profile, supersededBy }) => [
        orderId,
        profile,
        notAfter,
        String(daysRemaining),
        identifiers.join(" "),
        supersededBy?.orderId ?? ""
      ]),
      total - hidden
    ))
  if (hidden > 0) {
    const many = truncated ? `At least ${hidden}` : `${hidden}`
    yield* Console.error(`${many} of ${total} are not listed, because they have been replaced.`)
  }
})

/** `order list`: orders by their properties, or certificates that expire soon. */
export const listCommand = command(
  "list",
  "List orders, newest first. Example: acme-svc order list --identifier-suffix example.com. Exit codes: 0, 1, 2, 3.",
  {
    filters: orderFlags,
    days: optional(
      clampedFlag("expiring-in", { least: 1, most: expiring.mostDays }),
      "Certificates that expire within this many days, 1 to 100000, soonest first. The only other filter is --profile."
    ),
    hideSuperseded: switchFlag(
      "hide-superseded",
      "With --expiring-in: leave out certificates that have been replaced."
    ),
    ...pageOptions,
    json: jsonOption
  },
  ({ days, filters, hideSuperseded, ...paging }) => {
    const { profile, ...others } = filters
    if (days === undefined) {
      return hideSuperseded
        ? wrong("--hide-superseded requires --expiring-in.")
        : Effect.flatMap(searchOf(filters), (search) => withRecords(printOrders(search, paging)))
    }
    return Object.values(others).every((one) => one === undefined)
      ? withRecords(printExpiring({ profile, days, hideSuperseded }, paging))
      : wrong("With --expiring-in, only --profile, --hide-superseded and paging are allowed.")
  }
)

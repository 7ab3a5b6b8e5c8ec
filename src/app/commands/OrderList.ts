import { Command, Options } from "@effect/cli"
import { Console, Effect } from "effect"
import { AccountId, isId } from "../../domain/Id.ts"
import type { OrderStatus } from "../../domain/Order.ts"
import { currentSeconds } from "../../kernel/Time.ts"
import { expiringObject, orderObject } from "../../operations/Objects.ts"
import * as expiring from "../../operations/order/Expiring.ts"
import * as orders from "../../operations/order/OrderRecords.ts"
import { foldSerial } from "../../pki/x509/Serial.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { withRecords } from "../Records.ts"
import { Settings } from "../Settings.ts"
import {
  flag,
  jsonOption,
  numberFlag,
  optional,
  optionalText,
  optionalWord,
  pageOptions,
  timeFlag,
  wordOf
} from "./Flags.ts"
import { print } from "./Print.ts"

const statuses: ReadonlyArray<OrderStatus> = ["pending", "ready", "processing", "valid", "invalid"]

const serialFlag = flag("cert-serial", {
  shown: "hex",
  takes: "a serial number in hexadecimal, with or without colons",
  read: (text) => {
    const digits = text.replaceAll(/[:\s]/g, "")
    return /^[0-9a-f]{1,100}$/i.test(digits) ? foldSerial(digits) : undefined
  }
})

const folded = (name: string | undefined) => name?.toLowerCase().replace(/\.$/, "")
const shortestPart = 3
const mostDays = 100_000

const filters = {
  profile: optionalText("profile", "Of this profile."),
  accountId: optionalText("account-id", "Of this account."),
  status: optionalWord("status", statuses, "As stored."),
  identifier: optionalText("identifier", "With this very name; a wildcard as *.example.com."),
  suffix: optionalText("identifier-suffix", "With a name that ends so, from a label on."),
  contains: optionalText("identifier-contains", "With a name that contains this, at least 3 characters."),
  serial: optional(serialFlag, "Serial number in hexadecimal."),
  since: optional(timeFlag("since"), "Created at this time or later."),
  until: optional(timeFlag("until"), "Created before this time.")
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

/** The filters as the search takes them; what is wrong with them is found before the database is opened. */
const searchOf = Effect.fnUntraced(function*(filters: Filters) {
  const { accountId, contains, identifier, serial, since, suffix, until } = filters
  if ([identifier, suffix, contains].filter((one) => one !== undefined).length > 1) {
    return yield* wrong("--identifier, --identifier-suffix and --identifier-contains exclude each other.")
  }
  if (contains !== undefined && contains.length < shortestPart) {
    return yield* wrong(`--identifier-contains takes ${shortestPart} characters or more.`)
  }
  if (since !== undefined && until !== undefined && until <= since) {
    return yield* wrong("--until takes a time behind that of --since.")
  }
  if (accountId !== undefined && !isId(accountId)) {
    return yield* new CommandFailed({ code: 3, message: `--account-id: there is no account ${accountId}.` })
  }
  return {
    profile: filters.profile,
    accountId: accountId === undefined ? undefined : AccountId(accountId),
    status: yield* wordOf("status", statuses, filters.status),
    identifier: folded(identifier),
    identifierSuffix: folded(suffix)?.replace(/^\./, ""),
    identifierContains: contains,
    certSerial: serial,
    since,
    until
  }
})

const printOrders = Effect.fnUntraced(function*(
  search: Effect.Effect.Success<ReturnType<typeof searchOf>>,
  { json, limit, offset }: Paging
) {
  const { config } = yield* Settings.loaded
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
  if (found.truncated) yield* Console.error("The search ended early; narrow it by profile, account or time.")
})

const printExpiring = Effect.fnUntraced(function*(
  wanted: { readonly profile: string | undefined; readonly days: number; readonly hideSuperseded: boolean },
  { json, limit, offset }: Paging
) {
  const { hidden, items, total } = yield* expiring.list(wanted, { limit, offset })
  const objects = items.map(expiringObject)
  yield* print(json, { items: objects, total, hidden, days: wanted.days, limit, offset }, () =>
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
  if (hidden > 0) yield* Console.error(`${hidden} of ${total} left out: they have been replaced.`)
})

/** `order list`: orders by any of their properties, or the certificates that end soon. */
export const listCommand = Command.withDescription(
  Command.make("list", {
    filters,
    days: optional(
      numberFlag("expiring-in", { least: 1, most: mostDays, of: "a number of days" }),
      "Certificates that end within so many days, soonest first; beside it only --profile."
    ),
    hideSuperseded: Options.boolean("hide-superseded").pipe(
      Options.withDescription("With --expiring-in: without those that have been replaced.")
    ),
    ...pageOptions,
    json: jsonOption
  }, ({ days, filters, hideSuperseded, ...paging }) => {
    const { profile, ...others } = filters
    if (days === undefined) {
      return hideSuperseded
        ? wrong("--hide-superseded goes with --expiring-in.")
        : Effect.flatMap(searchOf(filters), (search) => withRecords(printOrders(search, paging)))
    }
    return Object.values(others).every((one) => one === undefined)
      ? withRecords(printExpiring({ profile, days, hideSuperseded }, paging))
      : wrong("Beside --expiring-in only --profile, --hide-superseded and paging are taken.")
  }),
  "List orders, newest first. Example: acme-svc order list --identifier-suffix example.com. Exit codes: 0, 1, 2, 3."
)

import { Command, Options } from "@effect/cli"
import { Console, Effect, Option } from "effect"
import { AccountId, isId } from "../../domain/Id.ts"
import type { OrderStatus } from "../../domain/Order.ts"
import { foldSerial } from "../../domain/Serial.ts"
import { currentSeconds } from "../../operations/acme/caller.ts"
import * as expiring from "../../operations/admin/expiring.ts"
import { expiringObject, orderObject } from "../../operations/admin/objects.ts"
import * as orders from "../../operations/admin/orders.ts"
import type { Config } from "../../subsystems/config/AppConfig.ts"
import { renderTable } from "../../surfaces/cli/table.ts"
import { CommandFailed } from "../CommandFailed.ts"
import type { Kit } from "./Kit.ts"
import { described, jsonOption, pageOptions, print, wordOf } from "./Kit.ts"

const statuses: ReadonlyArray<OrderStatus> = ["pending", "ready", "processing", "valid", "invalid"]
const filter = (name: string, text: string) =>
  Options.text(name).pipe(Options.optional, Options.withDescription(text), Options.map(Option.getOrUndefined))

const day = /^\d{4}-\d{2}-\d{2}$/
const instant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/

/** An RFC 3339 instant, or a day read as its first second in UTC. */
const secondsOf = (flag: string, text: string | undefined) => {
  if (text === undefined) return Effect.succeed(undefined)
  const millis = Date.parse(day.test(text) ? `${text}T00:00:00Z` : instant.test(text) ? text : "")
  return Number.isNaN(millis)
    ? new CommandFailed({ code: 2, message: `--${flag} takes YYYY-MM-DD or an RFC 3339 instant.` })
    : Effect.succeed(Math.floor(millis / 1000))
}

const foldedSerial = (text: string): string => foldSerial(text.replaceAll(/[:\s]/g, ""))

const folded = (name: string | undefined) => name?.toLowerCase().replace(/\.$/, "")
const shortestPart = 3
const mostDays = 100_000

const filters = {
  profile: filter("profile", "Of this profile."),
  accountId: filter("account-id", "Of this account."),
  status: filter("status", `As stored: ${statuses.join(", ")}.`),
  identifier: filter("identifier", "With this very name; a wildcard as *.example.com."),
  suffix: filter("identifier-suffix", "With a name that ends so, from a label on."),
  contains: filter("identifier-contains", "With a name that contains this, at least 3 characters."),
  serial: filter("cert-serial", "Serial number in hexadecimal."),
  since: filter("since", "Created at this time or later."),
  until: filter("until", "Created before this time.")
}

interface Filters {
  readonly profile: string | undefined
  readonly accountId: string | undefined
  readonly status: string | undefined
  readonly identifier: string | undefined
  readonly suffix: string | undefined
  readonly contains: string | undefined
  readonly serial: string | undefined
  readonly since: string | undefined
  readonly until: string | undefined
}

interface Paging {
  readonly limit: number
  readonly offset: number
  readonly json: boolean
}

const wrong = (message: string) => new CommandFailed({ code: 2, message })

const printOrders = Effect.fnUntraced(function*(config: Config, filters: Filters, { json, limit, offset }: Paging) {
  const { accountId, contains, identifier, serial, suffix } = filters
  if ([identifier, suffix, contains].filter((one) => one !== undefined).length > 1) {
    return yield* wrong("--identifier, --identifier-suffix and --identifier-contains exclude each other.")
  }
  if (contains !== undefined && contains.length < shortestPart) {
    return yield* wrong("--identifier-contains takes 3 characters or more.")
  }
  if (accountId !== undefined && !isId(accountId)) {
    return yield* new CommandFailed({ code: 3, message: `There is no account ${accountId}.` })
  }
  const found = yield* orders.list({
    profile: filters.profile,
    accountId: accountId === undefined ? undefined : AccountId(accountId),
    status: yield* wordOf("status", statuses, filters.status),
    identifier: folded(identifier),
    identifierSuffix: folded(suffix)?.replace(/^\./, ""),
    identifierContains: contains,
    certSerial: serial === undefined ? undefined : foldedSerial(serial),
    since: yield* secondsOf("since", filters.since),
    until: yield* secondsOf("until", filters.until)
  }, { limit, offset })
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
  if (wanted.days < 1 || wanted.days > mostDays) {
    return yield* wrong(`--expiring-in takes a number of days, 1 or more and at most ${mostDays}.`)
  }
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
export const listCommand = (kit: Kit) =>
  described(
    Command.make("list", {
      filters,
      days: Options.integer("expiring-in").pipe(
        Options.optional,
        Options.withDescription("Certificates that end within so many days, soonest first; beside it only --profile."),
        Options.map(Option.getOrUndefined)
      ),
      hideSuperseded: Options.boolean("hide-superseded").pipe(
        Options.withDescription("With --expiring-in: without those that have been replaced.")
      ),
      ...pageOptions,
      json: jsonOption
    }, ({ days, filters, hideSuperseded, ...paging }) =>
      kit.records(({ config }) => {
        const { profile, ...others } = filters
        if (days === undefined) {
          return hideSuperseded
            ? wrong("--hide-superseded goes with --expiring-in.")
            : printOrders(config, filters, paging)
        }
        return Object.values(others).every((one) => one === undefined)
          ? printExpiring({ profile, days, hideSuperseded }, paging)
          : wrong("Beside --expiring-in only --profile, --hide-superseded and paging are taken.")
      })),
    "List orders, newest first. Example: acme-svc order list --identifier-suffix example.com. Exit codes: 0, 1, 2, 3."
  )

import { Args, Command, Options } from "@effect/cli"
import { Console, Effect, Option } from "effect"
import { AccountId, isId } from "../../domain/Id.ts"
import type { OrderStatus } from "../../domain/Order.ts"
import { foldSerial } from "../../domain/Serial.ts"
import { currentSeconds } from "../../operations/acme/caller.ts"
import { orderDetailObject, orderObject } from "../../operations/admin/objects.ts"
import * as orders from "../../operations/admin/orders.ts"
import { isAcceptedReason } from "../../operations/revocation.ts"
import { renderOrder } from "../../surfaces/cli/order.ts"
import { renderTable } from "../../surfaces/cli/table.ts"
import { CommandFailed } from "../CommandFailed.ts"
import type { Kit } from "./Kit.ts"
import { described, jsonOption, pageOptions, print, wordOf } from "./Kit.ts"

const cannot = (message: string) => new CommandFailed({ code: 3, message })

const refused = {
  NoSuchOrder: ({ id }: orders.NoSuchOrder) => cannot(`There is no order ${id}.`),
  NotIssued: ({ id }: orders.NotIssued) => cannot(`Order ${id} has no certificate.`)
}

const revocationRefused = {
  ...refused,
  NotServed: ({ profile }: orders.NotServed) => cannot(`Profile ${profile} is not served, so nothing can be revoked.`),
  WasRevoked: () => cannot("The certificate is revoked already."),
  IssuerUnknown: () => cannot("No server has met the CA that signed this certificate yet, so no list would name it.")
}

const statuses: ReadonlyArray<OrderStatus> = ["pending", "ready", "processing", "valid", "invalid"]
const idArgument = Args.text({ name: "id" }).pipe(Args.withDescription("The order's id."))
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

const listCommand = (kit: Kit) =>
  described(
    Command.make("list", {
      profile: filter("profile", "Of this profile."),
      accountId: filter("account-id", "Of this account."),
      status: filter("status", `As stored: ${statuses.join(", ")}.`),
      identifier: filter("identifier", "With this very name; a wildcard as *.example.com."),
      suffix: filter("identifier-suffix", "With a name that ends so, from a label on."),
      contains: filter("identifier-contains", "With a name that contains this, at least 3 characters."),
      serial: filter("cert-serial", "Serial number in hexadecimal."),
      since: filter("since", "Created at this time or later."),
      until: filter("until", "Created before this time."),
      ...pageOptions,
      json: jsonOption
    }, (options) =>
      kit.records(({ config }) =>
        Effect.gen(function*() {
          const { accountId, contains, identifier, json, limit, offset, profile, serial, suffix } = options
          if ([identifier, suffix, contains].filter((one) => one !== undefined).length > 1) {
            return yield* new CommandFailed({
              code: 2,
              message: "--identifier, --identifier-suffix and --identifier-contains exclude each other."
            })
          }
          if (contains !== undefined && contains.length < shortestPart) {
            return yield* new CommandFailed({ code: 2, message: "--identifier-contains takes 3 characters or more." })
          }
          if (accountId !== undefined && !isId(accountId)) return yield* cannot(`There is no account ${accountId}.`)
          const found = yield* orders.list({
            profile,
            accountId: accountId === undefined ? undefined : AccountId(accountId),
            status: yield* wordOf("status", statuses, options.status),
            identifier: folded(identifier),
            identifierSuffix: folded(suffix)?.replace(/^\./, ""),
            identifierContains: contains,
            certSerial: serial === undefined ? undefined : foldedSerial(serial),
            since: yield* secondsOf("since", options.since),
            until: yield* secondsOf("until", options.until)
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
      )),
    "List orders, newest first. Example: acme-svc order list --identifier-suffix example.com. Exit codes: 0, 1, 2, 3."
  )

const showCommand = (kit: Kit) =>
  described(
    Command.make("show", { id: idArgument, json: jsonOption }, ({ id, json }) =>
      kit.records(({ config }) =>
        Effect.gen(function*() {
          const object = orderDetailObject(config, yield* orders.detail(config, id), yield* currentSeconds)
          yield* print(json, object, () =>
            renderOrder(object))
        }).pipe(Effect.catchTags({ NoSuchOrder: refused.NoSuchOrder }))
      )),
    "Show an order, its authorizations and jobs, and why it failed. Example: acme-svc order show ID. Exit codes: 0, 1, 3."
  )

const chainCommand = (kit: Kit) =>
  described(
    Command.make("chain", { id: idArgument }, ({ id }) =>
      kit.records(() =>
        Effect.flatMap(Effect.catchTags(orders.chain(id), refused), (pem) =>
          Console.log(pem.trimEnd()))
      )),
    "Print the certificate chain of an order, PEM. Example: acme-svc order chain ID. Exit codes: 0, 1, 3."
  )

const revokeCommand = (kit: Kit) =>
  described(
    Command.make("revoke", {
      id: idArgument,
      reason: Options.integer("reason").pipe(
        Options.optional,
        Options.withDescription("RFC 5280 code, 0 to 6 and 8 to 10.")
      ),
      wait: Options.integer("wait").pipe(
        Options.withDefault(0),
        Options.withDescription("Seconds to wait for the list to be signed.")
      )
    }, (options) =>
      kit.records(({ config }) =>
        Effect.gen(function*() {
          const reason = Option.getOrUndefined(options.reason)
          if (reason !== undefined && !isAcceptedReason(reason)) {
            return yield* new CommandFailed({ code: 2, message: "--reason takes 0 to 6 and 8 to 10." })
          }
          const job = yield* Effect.catchTags(
            orders.revoke(config, kit.operator, options.id, reason),
            revocationRefused
          )
          yield* Console.log(`Revoked. The list is signed by job ${job}.`)
          if (options.wait <= 0) return
          const ended = yield* orders.awaitJob(job, options.wait)
          if (ended?.status === "failed") {
            return yield* new CommandFailed({ code: 1, message: `Job ${job} failed: ${ended.lastError ?? ""}` })
          }
          yield* Console.log(
            ended === undefined || ended.status === "done"
              ? "The list is signed."
              : `Job ${job} has not run yet: is a worker running?`
          )
        })
      )),
    "Revoke the certificate of an order. Example: acme-svc order revoke ID --reason 4 --wait 10. Exit codes: 0, 1, 2, 3."
  )

/** `order`: orders and their certificates. */
export const orderCommand = (kit: Kit) =>
  described(
    Command.make("order").pipe(
      Command.withSubcommands([listCommand(kit), showCommand(kit), chainCommand(kit), revokeCommand(kit)])
    ),
    "Orders and their certificates."
  )

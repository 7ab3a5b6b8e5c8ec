import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { checkContacts } from "../../../domain/Account.ts"
import { BadRequest } from "../../../domain/OperatorError.ts"
import { currentSeconds } from "../../../kernel/Time.ts"
import * as accounts from "../../../operations/AccountRecords.ts"
import { accountsFile, mostOverApi } from "../../../operations/Exports.ts"
import { orderObject } from "../../../operations/Objects.ts"
import { accountDetailObject, accountObject } from "../../../operations/objects/AccountObjects.ts"
import { accountFilters, accountStatuses } from "../../../operations/RecordFilters.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import type { Filter } from "../Listing.ts"
import { filtersIn, listView, windowOf } from "../Listing.ts"
import { exportOf } from "../PanelExport.ts"
import { directoriesOf, orRefused, profilesOf } from "../PanelLists.ts"
import { forRole, moved, operatorIn, page } from "../Route.ts"

/* Accounts of clients. */

const names = ["profile", "status", "eabKid"] as const

const filtersOf = (config: Config): ReadonlyArray<Filter> => [
  { name: "profile", label: "Profile", kind: "choice", words: profilesOf(config) },
  { name: "status", label: "Status", kind: "choice", words: accountStatuses },
  { name: "eabKid", label: "EAB credential", kind: "text", hint: "kid" }
]

/** Reads contacts from a text with one on each line. A contact without a scheme is a mail address. A refusal names the line. */
const contactsOf = (text: string): Result.Result<ReadonlyArray<string>, BadRequest> => {
  const lines = text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== "")
  const contacts = lines.map((line) => /^[a-z][a-z0-9+.-]*:/i.test(line) ? line : `mailto:${line}`)
  const wrong = contacts.findIndex((contact) => Result.isFailure(checkContacts([contact])))
  return wrong < 0 ? Result.succeed(contacts) : Result.fail(
    new BadRequest({ detail: `${JSON.stringify(lines[wrong]?.slice(0, 120))} is not one mail address.` })
  )
}

/** A page of an account's orders, with their links. */
const ownedOrders = (config: Config, id: string, query: URLSearchParams) =>
  Effect.gen(function*() {
    const { items, total } = yield* accounts.ordersOf(id, windowOf(query, config))
    const now = yield* currentSeconds
    const rows = items.map((order) => orderObject(config, order, now))
    return {
      rows,
      list: listView(`/ui/accounts/${id}/orders`, query, [], {
        total,
        limit: windowOf(query, config).limit,
        shown: rows.length
      })
    }
  })

/** The routes of accounts. */
export const accountRoutes = (config: Config) => [
  forRole("viewer")("GET", "/ui/accounts", ({ query }) =>
    Effect.gen(function*() {
      const window = windowOf(query, config)
      const { items, problem, total } = yield* orRefused(
        Effect.flatMap(accountFilters(filtersIn(query, names)), (filters) => accounts.list(filters, window))
      )
      return page("accounts", "Accounts", {
        rows: items.map(accountObject),
        problem,
        directories: directoriesOf(config),
        done: query.get("done") ?? "",
        list: listView("/ui/accounts", query, filtersOf(config), {
          total,
          limit: windowOf(query, config).limit,
          shown: items.length
        }, {
          path: "/ui/accounts/export",
          most: mostOverApi
        })
      }, problem === undefined ? {} : { status: problem.status })
    })),
  forRole("viewer")(
    "GET",
    "/ui/accounts/export",
    (given) =>
      exportOf(
        given,
        "accounts",
        (format) =>
          Effect.flatMap(
            accountFilters(filtersIn(given.query, names)),
            (filters) => accountsFile(filters, { format, most: mostOverApi })
          )
      )
  ),
  forRole("viewer")("GET", "/ui/accounts/{id}", ({ parameters: { id = "" }, query }) =>
    Effect.gen(function*() {
      const account = accountDetailObject(yield* accounts.detail(id))
      const owned = yield* ownedOrders(config, id, query)
      return page("account", `Account ${id}`, { account, ...owned, done: query.get("done") ?? "" })
    })),
  forRole("viewer")("GET", "/ui/accounts/{id}/orders", ({ parameters: { id = "" }, query }) =>
    Effect.map(
      ownedOrders(config, id, query),
      (owned) => page("account-orders", `Orders of account ${id}`, { account: { id }, ...owned })
    )),
  forRole("operator")("POST", "/ui/accounts/{id}/contact", (given) => {
    const { form, parameters: { id = "" } } = given
    return Effect.as(
      Effect.flatMap(
        Effect.fromResult(contactsOf(form.get("contact") ?? "")),
        (contacts) => accounts.updateContact(operatorIn(given), id, contacts)
      ),
      moved(`/ui/accounts/${id}?done=contact`)
    )
  }),
  forRole("operator")("POST", "/ui/accounts/{id}/deactivate", (given) => {
    const { id = "" } = given.parameters
    return Effect.as(accounts.deactivate(operatorIn(given), id), moved(`/ui/accounts/${id}?done=deactivated`))
  }),
  forRole("operator")(
    "POST",
    "/ui/accounts/{id}/delete",
    (given) =>
      Effect.as(
        accounts.remove(operatorIn(given), given.parameters["id"] ?? ""),
        moved("/ui/accounts?done=account-deleted")
      )
  )
]

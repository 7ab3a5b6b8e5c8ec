import * as Effect from "effect/Effect"
import { accountFilterWords } from "../../../domain/Account.ts"
import { mostOverApi } from "../../../operations/operator/Exports.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import {
  deactivateAccount,
  deleteAccount,
  exportAccounts,
  listAccounts,
  listOrdersOf,
  readAccount,
  replaceContacts
} from "../../operator/acts/AccountActs.ts"
import { blockAccount, unblockAccount } from "../../operator/acts/BlockActs.ts"
import type { Filter } from "../Listing.ts"
import { listView, windowOf } from "../Listing.ts"
import { downloaded, looked, submitted } from "../PanelActs.ts"
import { directoriesOf, orRefused, profilesOf, severalKinds } from "../PanelLists.ts"
import type { Given } from "../Route.ts"
import { forRole, laggingPage, moved, page } from "../Route.ts"

/* The pages about accounts of clients. */

const filtersOf = (config: Config): ReadonlyArray<Filter> => [
  { name: "profile", label: "Profile", kind: "choice", words: profilesOf(config) },
  { name: "status", label: "Status", kind: "choice", words: accountFilterWords },
  { name: "eabKid", label: "EAB credential", kind: "text", hint: "kid" }
]

/** Returns a page of an account's orders, with their links. */
const ownedOrders = (config: Config, given: Given) =>
  Effect.map(looked(listOrdersOf, given), ({ items, limit, total }) => ({
    rows: items,
    several: severalKinds(config),
    list: listView(`/ui/accounts/${given.parameters["id"] ?? ""}/orders`, given.query, [], {
      total,
      limit,
      shown: items.length
    })
  }))

/** Returns the routes of the pages about accounts. */
export const accountRoutes = (config: Config) => [
  laggingPage("/ui/accounts", (given) =>
    Effect.gen(function*() {
      const { query } = given
      const { items, problem, total } = yield* orRefused(looked(listAccounts, given))
      return page("accounts", "Accounts", {
        rows: items,
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
  laggingPage("/ui/accounts/export", (given) => downloaded(exportAccounts, given)),
  laggingPage("/ui/accounts/{id}", (given) =>
    Effect.gen(function*() {
      const account = yield* looked(readAccount, given)
      return page("account", `Account ${account.id}`, {
        account,
        ...yield* ownedOrders(config, given),
        done: given.query.get("done") ?? ""
      })
    })),
  laggingPage("/ui/accounts/{id}/orders", (given) => {
    const { id = "" } = given.parameters
    return Effect.map(
      ownedOrders(config, given),
      (owned) => page("account-orders", `Orders of account ${id}`, { account: { id }, ...owned })
    )
  }),
  forRole("operator")(
    "POST",
    "/ui/accounts/{id}/contact",
    (given) => Effect.map(submitted(replaceContacts, given), ({ id }) => moved(`/ui/accounts/${id}?done=contact`))
  ),
  forRole("operator")(
    "POST",
    "/ui/accounts/{id}/deactivate",
    (given) => Effect.map(submitted(deactivateAccount, given), ({ id }) => moved(`/ui/accounts/${id}?done=deactivated`))
  ),
  forRole("operator")(
    "POST",
    "/ui/accounts/{id}/block",
    (given) => Effect.map(submitted(blockAccount, given), ({ id }) => moved(`/ui/accounts/${id}?done=blocked`))
  ),
  forRole("operator")(
    "POST",
    "/ui/accounts/{id}/unblock",
    (given) => Effect.map(submitted(unblockAccount, given), ({ id }) => moved(`/ui/accounts/${id}?done=unblocked`))
  ),
  forRole("operator")(
    "POST",
    "/ui/accounts/{id}/delete",
    (given) => Effect.as(submitted(deleteAccount, given), moved("/ui/accounts?done=account-deleted"))
  )
]

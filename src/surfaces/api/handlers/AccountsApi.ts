import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { currentSeconds } from "../../../kernel/Time.ts"
import * as accounts from "../../../operations/AccountRecords.ts"
import { accountsFile, mostOverApi } from "../../../operations/Exports.ts"
import { orderObject } from "../../../operations/Objects.ts"
import { accountDetailObject, accountObject } from "../../../operations/objects/AccountObjects.ts"
import { accountFilters } from "../../../operations/RecordFilters.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { Api } from "../Api.ts"
import { answering } from "../ApiRefusals.ts"
import { fileAnswer } from "./File.ts"
import { paged, windowOf } from "./Paging.ts"
import { operator } from "./RequestCaller.ts"

/** Accounts of ACME clients. */
export const accountsHandlers = (config: Config) => {
  const most = config.admin.page_size_max
  return HttpApiBuilder.group(Api, "accounts", (handlers) =>
    handlers
      .handle("listAccounts", ({ query }) => {
        const window = windowOf(query, most)
        return answering(Effect.map(
          Effect.flatMap(accountFilters(query), (filters) => accounts.list(filters, window)),
          (found) => paged(found, accountObject, window)
        ))
      })
      .handleRaw("exportAccounts", ({ query: { format = "csv", ...given } }) =>
        answering(Effect.gen(function*() {
          const made = yield* accountsFile(yield* accountFilters(given), { format, most: mostOverApi })
          return yield* fileAnswer("accounts", format, made)
        })))
      .handle("readAccount", ({ params: { id } }) => answering(Effect.map(accounts.detail(id), accountDetailObject)))
      .handle("listOrdersOf", ({ params: { id }, query }) => {
        const window = windowOf(query, most)
        return answering(Effect.gen(function*() {
          const now = yield* currentSeconds
          return paged(yield* accounts.ordersOf(id, window), (order) => orderObject(config, order, now), window)
        }))
      })
      .handle("updateAccount", ({ params: { id }, payload: { contact } }) =>
        answering(Effect.map(
          contact === undefined
            ? accounts.detail(id)
            : Effect.flatMap(operator, (by) => accounts.updateContact(by, id, contact ?? [])),
          accountDetailObject
        )))
      .handle("deactivateAccount", ({ params: { id } }) =>
        answering(Effect.map(
          Effect.flatMap(operator, (by) => accounts.deactivate(by, id)),
          accountDetailObject
        )))
      .handle(
        "deleteAccount",
        ({ params: { id } }) => answering(Effect.flatMap(operator, (by) => accounts.remove(by, id)))
      ))
}

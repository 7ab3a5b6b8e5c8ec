import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { accountFilterWords, accountState, checkContacts, maxContacts } from "../../../domain/Account.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import * as accounts from "../../../operations/operator/AccountRecords.ts"
import { accountsFile } from "../../../operations/operator/Exports.ts"
import { formats } from "../../../operations/operator/ExportText.ts"
import { orderObject } from "../../../operations/operator/Objects.ts"
import { accountDetailObject, accountObject } from "../../../operations/operator/objects/AccountObjects.ts"
import { act, FileOutput, noun } from "../Act.ts"
import { Acting, Configured, paged } from "../Acting.ts"
import type { Field } from "../Field.ts"
import { id, ofProfile, optional, or, paging, word } from "../Field.ts"
import { Int, pageOf } from "../schemas/Common.ts"
import { Order } from "../schemas/OrderSchemas.ts"
import { several } from "../TextFields.ts"
import { Account, AccountDetail, accountId, printedAccount } from "./AccountShape.ts"
import { blockAccount, unblockAccount } from "./BlockActs.ts"

/* Declares the acts about accounts of ACME clients. */

const filters = {
  ...ofProfile,
  status: optional(word(accountFilterWords, "The status of the account. A blocked account is valid too.")),
  eabKid: optional(id("The key identifier of the credential that bound the account."))
}

/** Returns the URI of a contact that a person has typed. A text without a scheme is a mail address. */
const uriOf = (contact: string): string =>
  contact === "" || /^[a-z][a-z0-9+.-]*:/i.test(contact) ? contact : `mailto:${contact}`

/** The contacts of an account. The rules for contacts that clients send apply here too. */
const contacts: Field<ReadonlyArray<string>> = {
  ...several("Mail addresses, with or without mailto: before them. An empty list or null clears the contacts.", {
    shown: "uri",
    help: "A mail address; may be given several times. Without it, the contacts are cleared.",
    most: maxContacts,
    of: "mail addresses, each of a domain with a dot that is not this mail host's own",
    read: (text) => Result.getOrElse(checkContacts([uriOf(text)]), () => [])[0]
  }),
  ofNull: []
}

/** Lists accounts. */
export const listAccounts = act({
  id: "listAccounts",
  does: "List accounts, newest first",
  access: "viewer",
  mayLag: true,
  input: { ...filters, ...paging },
  output: pageOf(Account),
  errors: [],
  run: ({ limit, offset, ...wanted }) =>
    paged({ limit, offset }, (window) => accounts.list(wanted, window), accountObject),
  http: { route: "GET /api/accounts" },
  cli: {
    command: "account list",
    example: "account list --status valid",
    columns: ({ contact = [], createdAt, id, lastSeenAt = "", profile, ...shown }) => ({
      id,
      profile,
      status: accountState(shown),
      created: createdAt,
      "last seen": lastSeenAt,
      contact: contact.join(" ")
    })
  }
})

/** Exports accounts as a file. */
export const exportAccounts = act({
  id: "exportAccounts",
  does: "Export accounts as a file",
  access: "viewer",
  mayLag: true,
  input: { ...filters, format: or(word(formats, "The format of the file."), "csv") },
  output: FileOutput,
  errors: ["export_too_large"],
  run: ({ format, ...wanted }) => Effect.flatMap(Acting.mostExported, (most) => accountsFile(wanted, { format, most })),
  http: { route: "GET /api/accounts/export" }
})

/** Shows an account. */
export const readAccount = act({
  id: "readAccount",
  does: "Show an account, with the number of its orders and of its live certificates",
  access: "viewer",
  mayLag: true,
  input: { id: accountId },
  output: AccountDetail,
  errors: [],
  run: ({ id }) => Effect.map(accounts.detail(id), accountDetailObject),
  http: { route: "GET /api/accounts/{id}" },
  cli: { command: "account show", example: "account show ID", members: printedAccount }
})

/** Lists the orders of an account. */
export const listOrdersOf = act({
  id: "listOrdersOf",
  does: "List the orders of an account, newest first",
  access: "viewer",
  mayLag: true,
  input: { id: accountId, ...paging },
  output: pageOf(Order),
  errors: [],
  run: ({ id, ...page }) =>
    Effect.gen(function*() {
      const config = yield* Configured.config
      const now = yield* currentSeconds
      return yield* paged(
        page,
        (window) => accounts.ordersOf(id, window),
        (order) => orderObject(config, order, now)
      )
    }),
  http: { route: "GET /api/accounts/{id}/orders" }
})

const replaced = (id: string, contact: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    return accountDetailObject(yield* accounts.updateContact(yield* Acting.operator, id, contact))
  })

const updateAccount = act({
  id: "updateAccount",
  does: "Replace the contacts of an account; an empty list or null clears them",
  access: "operator",
  input: { id: accountId, contact: optional(contacts) },
  output: AccountDetail,
  errors: [],
  run: ({ contact, id }) =>
    contact === undefined ? Effect.map(accounts.detail(id), accountDetailObject) : replaced(id, contact),
  http: { route: "PATCH /api/accounts/{id}" }
})

/** Replaces the contacts of an account with a complete list, from a form or from the command line. */
export const replaceContacts = act({
  id: "replaceContacts",
  does: "Replace the contacts of an account",
  access: "operator",
  input: { id: accountId, contact: { ...contacts, isNeeded: false, absent: [] } },
  output: AccountDetail,
  errors: [],
  run: ({ contact, id }) => replaced(id, contact),
  cli: {
    command: "account update-contact",
    example: "account update-contact ID --contact ops@example.org",
    args: ["id"],
    confirm: ({ contact, id }) =>
      Effect.map(
        accounts.detail(id),
        ({ account: { contact: before } }) =>
          contact.length === 0 && before.length > 0
            ? `Clear the contacts of account ${id}, ${before.join(" ")}?`
            : undefined
      ),
    text: ({ contact = [], id }) =>
      contact.length === 0
        ? `Account ${id} has no contact.`
        : `The contacts of account ${id} are ${contact.join(" ")}.`
  }
})

const staying = (count: number): string => count === 0 ? "" : `; its ${count} live certificate(s) stay`

/** Deactivates an account. */
export const deactivateAccount = act({
  id: "deactivateAccount",
  does: "Deactivate an account for good; its orders and certificates remain",
  access: "operator",
  input: { id: accountId },
  output: AccountDetail,
  errors: [],
  run: ({ id }) =>
    Effect.gen(function*() {
      return accountDetailObject(yield* accounts.deactivate(yield* Acting.operator, id))
    }),
  http: { route: "POST /api/accounts/{id}/deactivate" },
  cli: {
    command: "account deactivate",
    example: "account deactivate ID",
    confirm: ({ id }) =>
      Effect.map(
        accounts.detail(id),
        ({ account: { profile, status }, liveCertificates }) =>
          status === "valid"
            ? `Deactivate account ${id} of profile ${profile} for good${staying(liveCertificates)}?`
            : undefined
      ),
    text: ({ id, status }) => `Account ${id} is ${status}.`
  }
})

/** Deletes an account. */
export const deleteAccount = act({
  id: "deleteAccount",
  does: "Delete an account with its orders, unless one of its certificates can still be used",
  access: "operator",
  input: { id: accountId },
  output: Schema.Struct({ deleted: Schema.Struct({ orders: Int, authorizations: Int }) }),
  errors: ["live_certificates"],
  run: ({ id }) => Effect.flatMap(Acting.operator, (operator) => accounts.remove(operator, id)),
  http: { route: "DELETE /api/accounts/{id}" },
  cli: {
    command: "account delete",
    example: "account delete ID --yes",
    confirm: ({ id }) =>
      Effect.map(
        accounts.preview(id),
        ({ account: { profile }, orderCount }) =>
          `Delete account ${id} of profile ${profile} and its ${orderCount} order(s)?`
      ),
    text: ({ deleted: { authorizations, orders } }) =>
      `Deleted the account with ${orders} order(s) and ${authorizations} authorization(s).`
  }
})

/** The acts about accounts of ACME clients. */
export const accountActs = noun({
  name: "accounts",
  description: "Accounts of ACME clients.",
  commands: { account: "Accounts of ACME clients." },
  acts: [
    listAccounts,
    exportAccounts,
    readAccount,
    listOrdersOf,
    updateAccount,
    replaceContacts,
    deactivateAccount,
    blockAccount,
    unblockAccount,
    deleteAccount
  ]
})

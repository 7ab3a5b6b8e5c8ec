import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { AccountStatus } from "../../../domain/Account.ts"
import { accountFilterWords, accountState, checkContacts, maxContacts } from "../../../domain/Account.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import * as blocking from "../../../operations/operator/AccountBlocking.ts"
import * as accounts from "../../../operations/operator/AccountRecords.ts"
import { accountsFile } from "../../../operations/operator/Exports.ts"
import { formats } from "../../../operations/operator/ExportText.ts"
import { orderObject } from "../../../operations/operator/Objects.ts"
import { accountDetailObject, accountObject } from "../../../operations/operator/objects/AccountObjects.ts"
import { clientText } from "../../cli/Text.ts"
import { act, FileOutput, noun } from "../Act.ts"
import { Acting, Configured, paged } from "../Acting.ts"
import type { Field } from "../Field.ts"
import { id, key, line, ofProfile, optional, or, paging, word } from "../Field.ts"
import { Id, Int, intOf, pageOf, Time } from "../schemas/Common.ts"
import { Order } from "../schemas/OrderSchemas.ts"
import { several } from "../TextFields.ts"

/* Declares the acts about accounts of ACME clients. */

/** The status words of an account (RFC 8555 section 7.1.6). */
const accountStatuses = ["valid", "deactivated", "revoked"] as const satisfies ReadonlyArray<AccountStatus>

const account = {
  id: Id,
  profile: Schema.String,
  status: Schema.Literals(accountStatuses),
  blockedAt: Schema.optionalKey(Time).annotateKey({
    description: "Since when an operator has blocked the account. Absent if it is not blocked."
  }),
  blockReason: Schema.optionalKey(Schema.String).annotateKey({
    description: "Why the operator has blocked the account. Its client is not told."
  }),
  contact: Schema.optionalKey(Schema.Array(Schema.String)),
  termsOfServiceAgreed: Schema.optionalKey(Schema.Boolean),
  pubkeyFingerprint: Schema.String.annotate({
    description: "The SHA-256 of the SubjectPublicKeyInfo, in hexadecimal."
  }),
  keyType: Schema.String.annotate({ examples: ["ecdsa-p256"] }),
  eabKid: Schema.optionalKey(Id),
  createdAt: Time,
  createdIp: Schema.optionalKey(Schema.String),
  createdPtr: Schema.optionalKey(Schema.String),
  lastSeenAt: Schema.optionalKey(Time),
  lastSeenIp: Schema.optionalKey(Schema.String),
  lastSeenPtr: Schema.optionalKey(Schema.String)
}

const Account = Schema.Struct(account).annotate({ identifier: "Account" })

const AccountDetail = Schema.Struct({
  ...account,
  orderCount: Int,
  liveCertificates: intOf("Certificates that are neither revoked nor expired."),
  ordersInDay: intOf("Orders of the last 24 hours."),
  ordersInWeek: intOf("Orders of the last 7 days."),
  topNames: Schema.Array(Schema.Struct({ name: Schema.String, orders: Int })).annotate({
    description:
      "The names that the newest 1000 orders of the last 7 days have most often, with the numbers of the orders."
  })
}).annotate({ identifier: "AccountDetail" })

const accountId = key("The id of the account.")
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

const printed = ({
  blockedAt,
  blockReason,
  createdAt,
  createdIp,
  createdPtr,
  eabKid,
  keyType,
  lastSeenAt,
  lastSeenIp,
  lastSeenPtr,
  pubkeyFingerprint,
  termsOfServiceAgreed,
  ...shown
}: typeof AccountDetail.Type) => ({
  id: shown.id,
  profile: shown.profile,
  status: accountState({ blockedAt, status: shown.status }),
  blocked: blockedAt,
  blockReason,
  contact: shown.contact,
  termsAgreed: termsOfServiceAgreed,
  key: `${keyType}, SHA-256 ${pubkeyFingerprint}`,
  credential: eabKid,
  created: createdAt,
  from: clientText(createdIp, createdPtr),
  lastSeen: lastSeenAt,
  lastFrom: clientText(lastSeenIp, lastSeenPtr),
  orders: shown.orderCount,
  ordersInDay: shown.ordersInDay,
  ordersInWeek: shown.ordersInWeek,
  topNames: shown.topNames.map(({ name, orders }) => `${name} (${orders})`),
  liveCertificates: shown.liveCertificates
})

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
  cli: { command: "account show", example: "account show ID", members: printed }
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

const longestReason = 500

/** Blocks an account. */
export const blockAccount = act({
  id: "blockAccount",
  does: "Block an account: it can order nothing until it is unblocked; it can still revoke its certificates",
  access: "operator",
  input: {
    id: accountId,
    reason: line("Why the account is blocked. Operators see it; the client does not.", { longest: longestReason })
  },
  output: AccountDetail,
  errors: ["account_state"],
  run: ({ id, reason }) =>
    Effect.gen(function*() {
      return accountDetailObject(yield* blocking.block(yield* Acting.operator, id, reason))
    }),
  http: { route: "POST /api/accounts/{id}/block" },
  cli: {
    command: "account block",
    example: "account block ID --reason looping",
    args: ["id"],
    text: ({ id }) => `Account ${id} is blocked. Orders under way get no certificate; those that it has stay valid.`
  }
})

/** Unblocks an account. */
export const unblockAccount = act({
  id: "unblockAccount",
  does: "Unblock an account, which can order again at once",
  access: "operator",
  input: { id: accountId },
  output: AccountDetail,
  errors: ["account_state"],
  run: ({ id }) =>
    Effect.gen(function*() {
      return accountDetailObject(yield* blocking.unblock(yield* Acting.operator, id))
    }),
  http: { route: "POST /api/accounts/{id}/unblock" },
  cli: {
    command: "account unblock",
    example: "account unblock ID",
    text: ({ id }) => `Account ${id} is not blocked any more.`
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

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { checkContacts } from "../../domain/Account.ts"
import { problemOf } from "../../domain/Problem.ts"
import * as accounts from "../../operations/AccountRecords.ts"
import { accountDetailObject, accountObject } from "../../operations/objects/AccountObjects.ts"
import { accountFilters, accountStatuses } from "../../operations/RecordFilters.ts"
import { renderAccount, renderAccounts } from "../../surfaces/cli/AccountText.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { withRecords } from "../Records.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, optionalText, optionalWord, pageOptions, refusal, repeatedFlag } from "./Flags.ts"
import { print } from "./Print.ts"

const idArgument = Argument.String("id").pipe(Argument.withDescription("The account's id."))

const printOne = (json: boolean) => (found: accounts.AccountDetail) => {
  const object = accountDetailObject(found)
  return print(json, object, () => renderAccount(object))
}

const listCommand = command(
  "list",
  "List accounts, newest first. Example: acme-svc account list --status valid. Exit codes: 0, 1, 3.",
  {
    profile: optionalText("profile", "Only accounts of this profile."),
    status: optionalWord("status", accountStatuses),
    eabKid: optionalText("eab-kid", "Only accounts that this credential has bound."),
    ...pageOptions,
    json: jsonOption
  },
  ({ json, limit, offset, ...given }) =>
    withRecords(Effect.gen(function*() {
      const { items, total } = yield* accounts.list(yield* accountFilters(given), { limit, offset })
      const objects = items.map(accountObject)
      yield* print(json, { items: objects, total, limit, offset }, () => renderAccounts(objects, total))
    }))
)

const showCommand = command(
  "show",
  "Show an account, with the number of its orders and of its live certificates. Example: acme-svc account show ID. Exit codes: 0, 1, 3.",
  { id: idArgument, json: jsonOption },
  ({ id, json }) => withRecords(Effect.flatMap(accounts.detail(id), printOne(json)))
)

const updateContactCommand = command(
  "update-contact",
  "Replace the contacts of an account. Example: acme-svc account update-contact ID --contact mailto:ops@example.org. Exit codes: 0, 1, 2, 3.",
  {
    id: idArgument,
    contact: repeatedFlag("contact", "uri").pipe(
      Flag.mapEffect((given) =>
        Effect.mapError(
          Effect.fromResult(checkContacts(given)),
          (error) => refusal(`--contact: ${problemOf(error).detail}`)
        )
      ),
      Flag.withDescription("A mailto: URI; may be given several times. Without it, the contacts are cleared.")
    )
  },
  ({ contact, id }) =>
    withRecords(Effect.gen(function*() {
      const { account } = yield* accounts.updateContact(yield* Operator, id, contact)
      yield* Console.log(
        account.contact.length === 0
          ? `Account ${id} has no contact.`
          : `The contacts of account ${id} are ${account.contact.join(" ")}.`
      )
    }))
)

const certificates = (count: number): string => count === 0 ? "" : `; its ${count} live certificate(s) stay`

const deactivateCommand = command(
  "deactivate",
  "Deactivate an account for good; its orders and certificates remain. Example: acme-svc account deactivate ID. Exit codes: 0, 1, 2, 3.",
  { id: idArgument },
  ({ id }) =>
    withRecords(Effect.gen(function*() {
      const { account, liveCertificates } = yield* accounts.detail(id)
      if (account.status !== "valid") return yield* Console.log(`Account ${id} is ${account.status} already.`)
      yield* Confirmation.ask(
        `Deactivate account ${id} of profile ${account.profile} for good${certificates(liveCertificates)}?`
      )
      yield* accounts.deactivate(yield* Operator, id)
      yield* Console.log(`Deactivated account ${id}.`)
    }))
)

const deleteCommand = command(
  "delete",
  "Delete an account with its orders, unless one of its certificates can still be used. Example: acme-svc account delete ID --yes. Exit codes: 0, 1, 2, 3.",
  { id: idArgument },
  ({ id }) =>
    withRecords(Effect.gen(function*() {
      const { account, orderCount } = yield* accounts.preview(id)
      yield* Confirmation.ask(`Delete account ${id} of profile ${account.profile} and its ${orderCount} order(s)?`)
      const { deleted } = yield* accounts.remove(yield* Operator, id)
      yield* Console.log(
        `Deleted account ${id} with ${deleted.orders} order(s) and ${deleted.authorizations} authorization(s).`
      )
    }))
)

/** `account`: accounts of clients. */
export const accountCommand = Command.make("account").pipe(
  Command.withDescription("Accounts of ACME clients."),
  Command.withSubcommands([
    listCommand,
    showCommand,
    updateContactCommand,
    deactivateCommand,
    deleteCommand
  ])
)

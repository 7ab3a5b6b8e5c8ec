import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { operatorRoles } from "../../domain/OperatorRole.ts"
import { operatorDetailObject, operatorObject } from "../../operations/operators/OperatorObjects.ts"
import * as operators from "../../operations/operators/Operators.ts"
import { wordOf } from "../../operations/RecordFilters.ts"
import type { Page } from "../../surfaces/cli/Detail.ts"
import { renderDetail } from "../../surfaces/cli/Detail.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { Settings } from "../Settings.ts"
import { totpCommand } from "./AdminTotpCommand.ts"
import { command } from "./Descriptor.ts"
import { choiceArgument, jsonOption, optionalText, optionalWord, pageOptions } from "./Flags.ts"
import { nameArgument, newPassword, passwordOption, roleOption, withOperators } from "./OperatorInput.ts"
import { print } from "./Print.ts"

const statuses = ["active", "disabled"] as const
const contactOption = optionalText("contact", "Mail address of the operator, for notifications.")

const create = command(
  "create",
  "Create an operator. Example: acme-svc admin user create olga --role operator. Exit codes: 0, 1, 2, 3.",
  {
    name: nameArgument,
    file: passwordOption,
    role: roleOption("The role. Without it, the first operator is an admin and others are viewers."),
    contact: contactOption
  },
  ({ contact, file, name, role }) =>
    // A new password keeps the rules of the configuration, so all of it is needed.
    Effect.flatMap(Settings.loaded, ({ config }) =>
      withOperators(Effect.gen(function*() {
        const wanted = yield* wordOf("role", operatorRoles, role)
        const password = yield* newPassword(file)
        const operator = { username: name, password, role: wanted, contact }
        const made = yield* operators.create(config, yield* Operator, operator)
        yield* Console.log(`Operator ${made.username} was created with the role ${made.role}.`)
      })))
)

const list = command(
  "list",
  "List operators by name. Example: acme-svc admin user list --role admin. Exit codes: 0, 1, 3.",
  {
    role: roleOption("Only operators with this role."),
    status: optionalWord("status", statuses),
    ...pageOptions,
    json: jsonOption
  },
  ({ json, limit, offset, role, status }) =>
    withOperators(Effect.gen(function*() {
      const filters = {
        role: yield* wordOf("role", operatorRoles, role),
        status: yield* wordOf("status", statuses, status)
      }
      const { items, total } = yield* operators.list(filters, { limit, offset })
      const page: Page<ReturnType<typeof operatorObject>> = { items: items.map(operatorObject), total, limit, offset }
      yield* print(json, page, () =>
        renderTable(
          ["name", "role", "status", "second factor", "last sign-in", "contact"],
          page.items.map(({ contact, lastLoginAt = "never", role, status, totpEnabled, username }) => [
            username,
            role,
            status,
            totpEnabled ? "yes" : { text: "no", style: "yellow" },
            lastLoginAt,
            contact ?? { text: "none", style: "yellow" }
          ]),
          total
        ))
    }))
)

const show = command(
  "show",
  "Show an operator. Example: acme-svc admin user show olga. Exit codes: 0, 1, 3.",
  { name: nameArgument, json: jsonOption },
  ({ json, name }) =>
    withOperators(Effect.gen(function*() {
      const config = yield* Settings.forRecords
      const object = operatorDetailObject(yield* operators.show(config.admin, name))
      yield* print(json, object, () => renderDetail(object))
    }))
)

const passwd = command(
  "passwd",
  "Set an operator's password; ends their sessions. Example: acme-svc admin user passwd olga. Exit codes: 0, 1, 3.",
  { name: nameArgument, file: passwordOption },
  ({ file, name }) =>
    // A new password keeps the rules of the configuration, so all of it is needed.
    Effect.flatMap(Settings.loaded, ({ config }) =>
      withOperators(Effect.gen(function*() {
        const password = yield* newPassword(file)
        const ended = yield* operators.setPassword(config, yield* Operator, name, password)
        yield* Console.log(`The password was changed, and ${ended} session(s) ended.`)
      })))
)

const role = command(
  "role",
  "Change an operator's role; ends their sessions. Example: acme-svc admin user role olga viewer. Exit codes: 0, 1, 2, 3.",
  {
    name: nameArgument,
    role: choiceArgument("role", operatorRoles).pipe(
      Argument.withDescription("The new role.")
    )
  },
  ({ name, role }) =>
    withOperators(Effect.gen(function*() {
      yield* operators.setRole(yield* Operator, name, role)
      yield* Console.log(`The role is ${role}.`)
    }))
)

const contact = command(
  "contact",
  "Change an operator's contact; without --contact it is cleared. Example: acme-svc admin user contact olga --contact olga@example.org. Exit codes: 0, 1, 3.",
  { name: nameArgument, contact: contactOption },
  ({ contact, name }) =>
    withOperators(Effect.gen(function*() {
      yield* operators.setContact(yield* Operator, name, contact)
      yield* Console.log(contact === undefined ? "The contact was cleared." : `The contact is ${contact}.`)
    }))
)

const disable = command(
  "disable",
  "Disable an operator: neither sign-in nor tokens are accepted. Example: acme-svc admin user disable olga. Exit codes: 0, 1, 3.",
  { name: nameArgument },
  ({ name }) =>
    withOperators(Effect.gen(function*() {
      yield* operators.disable(yield* Operator, name)
      yield* Console.log(
        "The operator is disabled. The sessions have ended, and tokens are refused until the operator is enabled."
      )
    }))
)

const enable = command(
  "enable",
  "Let a disabled operator sign in again. Example: acme-svc admin user enable olga. Exit codes: 0, 1, 3.",
  { name: nameArgument },
  ({ name }) =>
    withOperators(Effect.gen(function*() {
      yield* operators.enable(yield* Operator, name)
      yield* Console.log("The operator is active. Tokens that have not ended are taken again.")
    }))
)

const remove = command(
  "delete",
  "Delete an operator; their rows in the audit trail remain. Example: acme-svc admin user delete olga. Exit codes: 0, 1, 2, 3.",
  { name: nameArgument },
  ({ name }) =>
    withOperators(Effect.gen(function*() {
      const operator = yield* Operator
      const username = yield* operators.previewRemoval(operator, name)
      yield* Confirmation.ask(`Delete operator ${username} with all sessions and tokens?`)
      yield* operators.remove(operator, username)
      yield* Console.log(`Operator ${username} was deleted.`)
    }))
)

/** `admin user`: operators. */
export const userCommand = Command.make("user").pipe(
  Command.withDescription("Operators."),
  Command.withSubcommands([create, list, show, passwd, role, contact, disable, enable, remove, totpCommand])
)

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { longestTokenName, tokenLife } from "../../domain/ApiToken.ts"
import { operatorRoles } from "../../domain/OperatorRole.ts"
import { parseCidr } from "../../kernel/net/Address.ts"
import { tokenObject } from "../../operations/operators/OperatorObjects.ts"
import * as tokens from "../../operations/operators/Tokens.ts"
import { wordOf } from "../../operations/RecordFilters.ts"
import type { Page } from "../../surfaces/cli/Detail.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, numberFlag, pageOptions, refusal, repeatedFlag, textFlag } from "./Flags.ts"
import { userOption, withOperators } from "./OperatorInput.ts"
import { orTakeBack, print } from "./Print.ts"

const rangesFlag = repeatedFlag("allow", "range").pipe(
  Flag.mapEffect((given) => {
    const odd = given.find((range) => parseCidr(range)._tag === "None")
    return odd === undefined
      ? Effect.succeed(given)
      : Effect.fail(refusal(`--allow ${JSON.stringify(odd)} is neither an address nor a range of addresses.`))
  }),
  Flag.withDescription("Address or range that may use the token; may be given several times.")
)

const create = command(
  "create",
  "Make a token for a program; it is printed only once. Example: acme-svc admin token create olga --name backup --expires-in 90. Exit codes: 0, 1, 2, 3.",
  {
    user: Argument.String("user").pipe(Argument.withDescription("The operator who owns it.")),
    name: textFlag("name", longestTokenName).pipe(Flag.withDescription("The purpose of the token.")),
    role: textFlag("role").pipe(
      Flag.withDefault("viewer"),
      Flag.withDescription(`${operatorRoles.join(", ")}; at most the role of its owner.`)
    ),
    days: numberFlag("expires-in", { ...tokenLife, of: "a number of days" }).pipe(
      Flag.withDescription("Days until it expires.")
    ),
    allow: rangesFlag
  },
  ({ allow, days, name, role, user }) =>
    withOperators(Effect.gen(function*() {
      const word = yield* wordOf("role", operatorRoles, role)
      const { record, token } = yield* tokens.create(yield* Operator, {
        username: user,
        name,
        role: word ?? "viewer",
        expiresInDays: days,
        allowedAddresses: allow
      })
      yield* Console.log(token)
      yield* orTakeBack("the token was revoked", tokens.revoke(yield* Operator, record.id))
      yield* Console.error(`The token is shown only now; its id is ${record.id}.`)
    }))
)

const list = command(
  "list",
  "List tokens, newest first, without their text. Example: acme-svc admin token list --user olga. Exit codes: 0, 1, 3.",
  { user: userOption, ...pageOptions, json: jsonOption },
  ({ json, limit, offset, user }) =>
    withOperators(Effect.gen(function*() {
      const { items, total } = yield* tokens.list(user, { limit, offset })
      const page: Page<ReturnType<typeof tokenObject>> = { items: items.map(tokenObject), total, limit, offset }
      yield* print(json, page, () =>
        renderTable(
          ["id", "user", "name", "role", "expires", "last used", "revoked"],
          page.items.map(({ expiresAt, id, lastUsedAt = "never", name, revokedAt = "", role, user }) => [
            id,
            user,
            name,
            role,
            expiresAt,
            lastUsedAt,
            revokedAt
          ]),
          total
        ))
    }))
)

const revoke = command(
  "revoke",
  "Revoke a token, at once and for good. Example: acme-svc admin token revoke ID. Exit codes: 0, 1, 2, 3.",
  {
    id: Argument.String("id").pipe(Argument.withDescription("The token's id."))
  },
  ({ id }) =>
    withOperators(Effect.gen(function*() {
      const { name, username } = yield* tokens.find(id)
      yield* Confirmation.ask(`Revoke token ${name} of ${username}?`)
      yield* tokens.revoke(yield* Operator, id)
      yield* Console.log(`Token ${name} of ${username} is revoked.`)
    }))
)

/** `admin token`: the tokens of programs. */
export const tokenCommand = Command.make("token").pipe(
  Command.withDescription("Tokens of programs."),
  Command.withSubcommands([create, list, revoke])
)

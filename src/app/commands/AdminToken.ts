import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { longestTokenName, tokenLife } from "../../domain/ApiToken.ts"
import { operatorRoles } from "../../domain/OperatorRole.ts"
import { parseCidr } from "../../kernel/net/Address.ts"
import { wordOf } from "../../operations/Filters.ts"
import { tokenObject } from "../../operations/operators/OperatorObjects.ts"
import * as tokens from "../../operations/operators/Tokens.ts"
import type { Page } from "../../surfaces/cli/Detail.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { Confirmation } from "../Confirmation.ts"
import { Operator } from "../Operator.ts"
import { jsonOption, numberFlag, pageOptions, refusal, textFlag } from "./Flags.ts"
import { userOption, withOperators } from "./Operators.ts"
import { print } from "./Print.ts"

const rangesFlag = Options.text("allow").pipe(
  Options.withPseudoName("range"),
  Options.repeated,
  Options.mapEffect((given) => {
    const odd = given.find((range) => parseCidr(range)._tag === "None")
    return odd === undefined
      ? Effect.succeed(given)
      : Effect.fail(refusal(`--allow ${JSON.stringify(odd)} is neither an address nor a range of addresses.`))
  }),
  Options.withDescription("Address or range that may use the token; may be given several times.")
)

const create = Command.withDescription(
  Command.make("create", {
    user: Args.text({ name: "user" }).pipe(Args.withDescription("The operator who owns it.")),
    name: textFlag("name", longestTokenName).pipe(Options.withDescription("The purpose of the token.")),
    role: textFlag("role").pipe(
      Options.withDefault("viewer"),
      Options.withDescription(`${operatorRoles.join(", ")}; at most the role of its owner.`)
    ),
    days: numberFlag("expires-in", { ...tokenLife, of: "a number of days" }).pipe(
      Options.withDescription("Days until it expires.")
    ),
    allow: rangesFlag
  }, ({ allow, days, name, role, user }) =>
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
      yield* Console.error(`The token is shown only now; its id is ${record.id}.`)
    }))),
  "Make a token for a program; it is printed only once. Example: acme-svc admin token create olga --name backup --expires-in 90. Exit codes: 0, 1, 2, 3."
)

const list = Command.withDescription(
  Command.make(
    "list",
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
  ),
  "List tokens, newest first, without their text. Example: acme-svc admin token list --user olga. Exit codes: 0, 1, 3."
)

const revoke = Command.withDescription(
  Command.make("revoke", {
    id: Args.text({ name: "id" }).pipe(Args.withDescription("The token's id."))
  }, ({ id }) =>
    withOperators(Effect.gen(function*() {
      const { name, username } = yield* tokens.find(id)
      yield* Confirmation.ask(`Revoke token ${name} of ${username}?`)
      yield* tokens.revoke(yield* Operator, id)
      yield* Console.log(`Token ${name} of ${username} is revoked.`)
    }))),
  "Revoke a token, at once and for good. Example: acme-svc admin token revoke ID. Exit codes: 0, 1, 2, 3."
)

/** `admin token`: the tokens of programs. */
export const tokenCommand = Command.withDescription(
  Command.make("token").pipe(Command.withSubcommands([create, list, revoke])),
  "Tokens of programs."
)

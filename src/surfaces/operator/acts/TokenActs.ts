import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { longestTokenName, mostTokenAddresses, tokenLife } from "../../../domain/ApiToken.ts"
import { operatorRoles } from "../../../domain/OperatorRole.ts"
import { parseCidr } from "../../../engine/net/Address.ts"
import { tokenObject } from "../../../operations/operator/identity/OperatorObjects.ts"
import * as tokens from "../../../operations/operator/identity/Tokens.ts"
import { act, noun } from "../Act.ts"
import { Acting, paged } from "../Acting.ts"
import { key, line, optional, or, paging, whole, word } from "../Field.ts"
import { created, Id, pageOf, Time } from "../schemas/Common.ts"
import { Role } from "../schemas/OperatorSchemas.ts"
import { several, username } from "../TextFields.ts"

/* Declares the acts about tokens for programs (docs/contribute/decisions/admin.md, "Tokens"). */

const token = {
  id: Id,
  name: Schema.String,
  user: Schema.String,
  role: Role,
  createdAt: Time,
  expiresAt: Time,
  lastUsedAt: Schema.optionalKey(Time),
  lastUsedIp: Schema.optionalKey(Schema.String),
  allowedAddresses: Schema.optionalKey(Schema.Array(Schema.String)),
  revokedAt: Schema.optionalKey(Time)
}

const Token = Schema.Struct(token).annotate({ identifier: "Token" })

const MintedToken = Schema.Struct({
  ...token,
  token: Schema.String.annotate({ description: "Send it as `Authorization: Bearer`. It is shown only now." })
}).annotate(created("MintedToken"))

/**
 * Returns the owner whose tokens are listed. If no owner is named, the command line lists all tokens, and other
 * surfaces list the caller's own tokens.
 */
const ownerOf = (user: string | undefined) =>
  Effect.flatMap(Acting, ({ operator, role }) =>
    operator.kind === "cli"
      ? Effect.succeed(user)
      : tokens.ownerListed({ username: operator.id ?? "", role }, user))

const listTokens = act({
  id: "listTokens",
  does: "List tokens, newest first, without their secrets",
  access: "own",
  input: {
    user: optional(
      username("Only the tokens of this operator. Only an admin may use this parameter.", {
        help: "Only the tokens of this operator."
      })
    ),
    ...paging
  },
  output: pageOf(Token),
  errors: [],
  run: ({ user, ...window }) =>
    Effect.gen(function*() {
      const owner = yield* ownerOf(user)
      return yield* paged(window, (page) => tokens.list(owner, page), tokenObject)
    }),
  http: { route: "GET /api/tokens" },
  cli: {
    command: "admin token list",
    example: "admin token list --user olga",
    columns: ({ expiresAt, id, lastUsedAt = "never", name, revokedAt = "", role, user }) => ({
      id,
      user,
      name,
      role,
      expires: expiresAt,
      "last used": lastUsedAt,
      revoked: revokedAt
    })
  }
})

/**
 * Creates a token. Over HTTP this requires the password, because otherwise a stolen session could create a token that
 * is valid for a year.
 */
export const createToken = act({
  id: "createToken",
  does: "Create a token; its secret is shown once",
  access: "own",
  input: {
    name: line("Its purpose.", { longest: longestTokenName }),
    role: or(
      word(operatorRoles, "The role of the token, which must not have more rights than the role of its owner."),
      "viewer"
    ),
    expiresInDays: whole(`${tokenLife.least} to ${tokenLife.most}.`, {
      ...tokenLife,
      of: "a number of days",
      help: "Days until it expires."
    }),
    user: optional(
      username("The owner. Without it, the caller. Only the role admin may name somebody else.", {
        help: "The operator who owns it."
      })
    ),
    allowedAddresses: optional(
      several("Addresses or CIDR ranges that may use the token.", {
        shown: "range",
        help: "Address or range that may use the token; may be given several times.",
        most: mostTokenAddresses,
        of: "addresses and ranges of addresses",
        read: (text) => parseCidr(text)._tag === "None" ? undefined : text
      })
    )
  },
  output: MintedToken,
  errors: ["name_taken"],
  run: ({ allowedAddresses = [], user, ...asked }) =>
    Effect.gen(function*() {
      const operator = yield* Acting.operator
      const made = yield* tokens.create(operator, { ...asked, allowedAddresses, username: user ?? operator.id ?? "" })
      return { ...tokenObject(made.record), token: made.token }
    }),
  http: { route: "POST /api/tokens", status: 201, isStepUp: true },
  cli: {
    command: "admin token create",
    help: "Make a token for a program; it is printed only once.",
    example: "admin token create olga --name backup --expires-in 90",
    args: ["user"],
    needs: ["user"],
    flags: { allowedAddresses: { flag: "allow" }, expiresInDays: { flag: "expires-in" } },
    text: ({ token }) => token,
    remark: ({ id }) => `The token is shown only now; its id is ${id}.`,
    ifLost: {
      outcome: "the token was revoked",
      undo: ({ id }) => Effect.flatMap(Acting.operator, (operator) => tokens.revoke(operator, id))
    }
  }
})

/** Revokes a token. This requires no password, because it must be possible to end access quickly. */
export const revokeToken = act({
  id: "revokeToken",
  does: "Revoke a token, at once and for good",
  access: "own",
  input: { id: key("The id of the token.") },
  output: Token,
  errors: [],
  run: ({ id }) =>
    Effect.gen(function*() {
      yield* tokens.revoke(yield* Acting.operator, id)
      return tokenObject(yield* tokens.find(id))
    }),
  http: { route: "POST /api/tokens/{id}/revoke", status: 204 },
  cli: {
    command: "admin token revoke",
    example: "admin token revoke ID",
    confirm: ({ id }) => Effect.map(tokens.find(id), ({ name, username }) => `Revoke token ${name} of ${username}?`),
    text: ({ name, user }) => `Token ${name} of ${user} is revoked.`
  }
})

/** The acts about tokens for programs. */
export const tokenActs = noun({
  name: "tokens",
  description: "Tokens for programs.",
  commands: { "admin token": "Tokens of programs." },
  acts: [listTokens, createToken, revokeToken]
})

import { Result, Schema } from "effect"
import { assert, describe, it } from "vitest"
import type { OperatorError } from "../../../src/domain/OperatorError.ts"
import { operatorProblemOf } from "../../../src/domain/OperatorProblem.ts"
import { checkBody, checkQuery } from "../../../src/surfaces/api/Decoding.ts"
import { routes } from "../../support/Roles.ts"

/* What fits the declaration, and the sentence of what does not. It quotes no value but a word that is none of its set. */

const routeOf = (name: string) => routes.find((route) => route.name === name) ?? assert.fail(name)
const said = (error: OperatorError): string => operatorProblemOf(error).message

const bodyOf = (name: string, body: unknown) => {
  const { payload } = routeOf(name)
  return payload === undefined ? assert.fail(name) : Result.mapError(checkBody(payload, body), said)
}
const queryOf = (name: string, query: string) =>
  Result.mapBoth(checkQuery(routeOf(name).query, query), {
    onFailure: said,
    onSuccess: String
  })

const token = { password: "p", name: "n", role: "viewer", expiresInDays: 1 }
const secret = "what nobody else may read"

describe("a body of the API fits its route", () => {
  it.each([
    ["createToken", token],
    ["createToken", { ...token, allowedAddresses: ["192.0.2.1"], user: "ann" }],
    ["cleanNonces", {}],
    ["cleanNonces", { ttlSeconds: -5 }],
    ["updateAccount", { contact: [] }],
    ["updateAccount", { contact: null }],
    ["updateAccount", {}],
    ["changeContact", { password: "p", contact: null }],
    ["changeOwnContact", { password: "p", contact: "" }],
    ["revokeOrder", { reason: null }],
    ["createCredential", { label: "a", profile: null }]
  ])("%s %j", (name, body) => {
    assert.deepStrictEqual(bodyOf(name, body), Result.succeed(body))
  })

  it.each<readonly [string, unknown, string]>([
    ["createToken", { password: secret }, "The member name is missing."],
    ["createToken", { ...token, password: 5 }, "The member password must be a text."],
    ["createToken", { ...token, [secret]: secret }, `The member ${secret} is unknown.`],
    ["createToken", { ...token, ["n".repeat(300)]: 1 }, `The member ${"n".repeat(128)} is unknown.`],
    ["createToken", { ...token, role: "root" }, "role takes one of viewer, operator, admin, not \"root\"."],
    [
      "createToken",
      { ...token, role: "r".repeat(300) },
      `role takes one of viewer, operator, admin, not "${"r".repeat(64)}".`
    ],
    ["createToken", { ...token, role: ["viewer"] }, "The member role must be one of viewer, operator, admin."],
    ["createToken", { ...token, role: null }, "The member role must be one of viewer, operator, admin."],
    ["createToken", { ...token, expiresInDays: secret }, "The member expiresInDays must be an integer."],
    ["createToken", { ...token, expiresInDays: 1.5 }, "The member expiresInDays must be an integer."],
    ["createToken", { ...token, allowedAddresses: secret }, "The member allowedAddresses must be an array."],
    ["createToken", { ...token, allowedAddresses: ["a", [secret]] }, "The member allowedAddresses[1] must be a text."],
    ["createToken", [token], "The body must be an object."],
    ["createToken", null, "The body must be an object."],
    ["createToken", secret, "The body must be an object."],
    ["disableSecondFactor", { password: null }, "The member password must be a text."],
    ["cleanNonces", { ttlSeconds: secret }, "The member ttlSeconds must be an integer."]
  ])("or is refused: %s %j", (name, body, sentence) => {
    assert.deepStrictEqual(bodyOf(name, body), Result.fail(sentence))
  })

  it.each<readonly [unknown, string]>([
    [{ ...token, name: "a\u0000" }, "The member name"],
    [{ ...token, allowedAddresses: ["a", "\ud83d"] }, "The member allowedAddresses[1]"],
    [{ ...token, [`a\u0000`]: 1 }, "The body"],
    ["\u0000", "The body"]
  ])("or is refused for a character that no database stores: %j", (body, place) => {
    assert.deepStrictEqual(
      bodyOf("createToken", body),
      Result.fail(`${place} contains a character that cannot be stored.`)
    )
  })
})

describe("a query of the API fits its route", () => {
  it.each([
    ["listOrders", "", ""],
    ["listOrders", "limit=10&offset=-2&status=valid", "limit=10&offset=-2&status=valid"],
    ["listOrders", "limit=&status=", ""],
    ["listOrders", "limit=%20&status=%09&accountId=+", ""],
    ["listOrders", "limit=+10+&status=%20valid%09", "limit=10&status=valid"],
    [
      "listOrders",
      `limit=1${"0".repeat(20)}&offset=-1${"0".repeat(20)}`,
      `limit=1${"0".repeat(20)}&offset=-1${"0".repeat(20)}`
    ],
    ["listJobs", "kind=+order_sweep+&orderId=%20", "kind=order_sweep"],
    ["listAudit", "outcome=+failure", "outcome=failure"],
    ["listExpiring", "days=+7+&superseded=+hide+", "days=7&superseded=hide"],
    ["listOperators", "role=+admin+&status=%20", "role=admin"],
    ["listTokens", "user=+olga+", "user=olga"],
    ["listOrders", "limit=&limit=2&limit=", "limit=2"],
    ["readOrder", "", ""],
    ["readOrder", "limit=", ""],
    ["readHealth", "", ""]
  ])("%s ?%s", (name, query, kept) => {
    assert.deepStrictEqual(queryOf(name, query), Result.succeed(kept))
  })

  it.each([
    ["listOrders", "limit=1e3", "The parameter limit must be an integer."],
    ["listOrders", `limit=${secret}`, "The parameter limit must be an integer."],
    ["listOrders", "limit=1&limit=2", "The parameter limit was given twice."],
    ["listOrders", "limit=1&limit=2&limit=3", "The parameter limit was given twice."],
    ["listOrders", "profile=a&profile=b", "The parameter profile was given twice."],
    ["listOrders", "status=valid&status=ready", "The parameter status was given twice."],
    [
      "listOrders",
      "status=gone",
      "status takes one of pending, ready, processing, valid, invalid, revoked, not \"gone\"."
    ],
    ["listOrders", "__proto__=1", "The parameter __proto__ is unknown."],
    ["listOrders", `${"n".repeat(300)}=1`, `The parameter ${"n".repeat(128)} is unknown.`],
    ["listOrders", "%00=1", "The query contains a character that cannot be stored."],
    ["listOrders", "profile=%00", "The parameter profile contains a character that cannot be stored."],
    ["search", "q=", "The parameter q is missing."],
    ["readOrder", "limit=1", "The parameter limit is unknown."],
    ["readOrder", `${"n".repeat(300)}=1`, `The parameter ${"n".repeat(128)} is unknown.`],
    ["readOrder", "a=&b=%00", "The parameter b contains a character that cannot be stored."],
    ["readHealth", "deep=1", "The parameter deep is unknown."]
  ])("or is refused: %s ?%s", (name, query, sentence) => {
    assert.deepStrictEqual(queryOf(name, query), Result.fail(sentence))
  })

  it("or is told the one word that there is", () => {
    const schema = Schema.Struct({ all: Schema.optional(Schema.Literal("true")) })
    const refused = Result.mapError(checkQuery(schema, "all=1"), said)
    assert.deepStrictEqual(refused, Result.fail("all takes one of true, not \"1\"."))
  })

  it("with 64 parameters at most", () => {
    const blank = (count: number) => Array.from({ length: count }, (_, at) => `p${at}=`).join("&")
    assert.deepStrictEqual(queryOf("listOrders", blank(64)), Result.succeed(""))
    assert.deepStrictEqual(queryOf("listOrders", blank(65)), Result.fail("A query takes 64 parameters at most."))
  })
})

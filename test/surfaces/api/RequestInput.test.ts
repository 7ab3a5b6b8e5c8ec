import { Effect, Result } from "effect"
import { assert, describe, it } from "vitest"
import { operatorProblemOf } from "../../../src/domain/OperatorProblem.ts"
import { BodyTooLarge, BodyTooSlow } from "../../../src/kernel/http/HttpRefused.ts"
import type { Request } from "../../../src/kernel/http/Message.ts"
import { inputOf } from "../../../src/surfaces/api/RequestInput.ts"
import { routes } from "../../support/Roles.ts"

/* The body and the query of a request, before a handler has them. */

const json = { "content-type": "application/json" }

const sent = (method: string, body: string, headers: Request["headers"], more: Partial<Request> = {}): Request => ({
  id: "1",
  method,
  target: "/",
  path: "/",
  headers,
  clientIp: "192.0.2.1",
  userAgent: undefined,
  body: Effect.succeed(Buffer.from(body)),
  ...more
})

/** What a route is brought: its body and its query, or the status and the sentence of a refusal. */
const told = (name: string, request: Request) => {
  const route = routes.find((one) => one.name === name) ?? assert.fail(name)
  return Result.match(Effect.runSync(Effect.result(inputOf(request, route, 9))), {
    onFailure: (error) => {
      const { message, status } = operatorProblemOf(error)
      return [status, message]
    },
    onSuccess: ({ body, query }) => [body, String(query)]
  })
}

describe("a request of the API brings", () => {
  it.each<readonly [string, Request, ReadonlyArray<unknown>]>([
    ["createCredential", sent("POST", "{\"label\":\"a\"}", json), [{ label: "a" }, ""]],
    ["createCredential", sent("POST", "{\"label\":\"a\"}", { "content-type": "Application/JSON ; charset=x" }), [
      { label: "a" },
      ""
    ]],
    ["createCredential", sent("POST", "{\"label\":\"a\"}", { ...json, "content-encoding": "identity" }), [
      { label: "a" },
      ""
    ]],
    ["revokeOrder", sent("POST", "", {}), [{}, ""]],
    ["revokeOrder", sent("POST", "", json), [{}, ""]],
    ["revokeOrder", sent("POST", "", { "content-type": "text/plain" }), [{}, ""]],
    ["revokeCredential", sent("POST", " { } ", json), [undefined, ""]],
    ["revokeCredential", sent("POST", "", {}), [undefined, ""]],
    ["revokeCredential", sent("POST", "", json), [undefined, ""]],
    ["deleteCredential", sent("DELETE", "", {}, { target: "/?accounts=keep" }), [undefined, "accounts=keep"]],
    ["listOrders", sent("GET", "", {}, { target: "/?limit=1&status=" }), [undefined, "limit=1"]],
    ["search", sent("GET", "", {}, { target: "/?q=a?b" }), [undefined, "q=a%3Fb"]]
  ])("what its route takes: %s %o", (name, request, both) => {
    assert.deepStrictEqual(told(name, request), both)
  })

  it.each<readonly [string, Request, number, string | undefined]>([
    ["createCredential", sent("POST", "{\"label\":\"a\"}", {}), 415, undefined],
    ["createCredential", sent("POST", "{\"label\":\"a\"}", { "content-type": "text/plain" }), 415, undefined],
    ["createCredential", sent("POST", "{\"label\":\"a\"}", { "content-type": "application/json5" }), 415, undefined],
    ["createCredential", sent("POST", "{\"label\":\"a\"}", { "content-type": "x/application/json" }), 415, undefined],
    ["createCredential", sent("POST", "{\"label\":\"a\"}", { ...json, "content-encoding": "gzip" }), 415, undefined],
    ["revokeOrder", sent("POST", "{}", { "content-type": "text/plain" }), 415, undefined],
    ["createCredential", sent("POST", "", {}), 400, "The member label is missing."],
    ["createCredential", sent("POST", "{", json), 400, "The body is not JSON."],
    ["createCredential", sent("POST", "{\"a\":1}", json), 400, "The member a is unknown."],
    ["createCredential", sent("POST", "", json, { body: new BodyTooLarge() }), 413, undefined],
    ["createCredential", sent("POST", "", json, { body: new BodyTooSlow() }), 400, "The body did not arrive in time."],
    ["revokeCredential", sent("POST", "{}", {}), 400, "This route takes no body."],
    ["revokeCredential", sent("POST", "[]", json), 400, "This route takes no body."],
    ["revokeCredential", sent("POST", "0", json), 400, "This route takes no body."],
    ["revokeCredential", sent("POST", "", {}, { body: new BodyTooLarge() }), 413, undefined],
    ["revokeCredential", sent("POST", "", {}, { target: "/?a=1" }), 400, "The parameter a is unknown."],
    ["listOrders", sent("GET", "", {}, { target: "/?limit=x" }), 400, "The parameter limit must be an integer."]
  ])("nothing else: %s %o", (name, request, status, sentence) => {
    const [refused, message] = told(name, request)
    assert.deepStrictEqual([refused, sentence === undefined ? undefined : message], [status, sentence])
  })

  it("no body by a GET, which is not waited for", () => {
    assert.deepStrictEqual(told("listOrders", sent("GET", "", json, { body: Effect.never })), [undefined, ""])
  })
})

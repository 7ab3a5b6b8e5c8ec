import { assert, describe, it } from "vitest"
import { declaration } from "../../../src/surfaces/operator/ActDocument.ts"
import { routesOf } from "../../../src/surfaces/operator/ApiRoutes.ts"
import { nouns } from "../../../src/surfaces/operator/Nouns.ts"
import { documentOf } from "../../../src/surfaces/operator/OpenApiDocument.ts"
import type { OpenApiDocument } from "../../support/Documented.ts"
import { makeDocumented, operationsOf, schemasOf } from "../../support/Documented.ts"

/* The OpenAPI document from a reader's point of view. `npm run interop -- openapi` reads it with third-party tools. */

const json = "application/json"

/** An error response, as in the document. */
interface Media {
  readonly example: { readonly error: string }
  readonly schema: { readonly properties: { readonly error: { readonly enum: ReadonlyArray<string> } } }
}

const document: OpenApiDocument = JSON.parse(JSON.stringify(documentOf("1.2.3", "https://panel.example")))
const routes = routesOf(declaration)
const operations = operationsOf(document)
const named = (name: string) => operations.find(({ operation }) => operation.operationId === name)?.operation

describe("the OpenAPI document", () => {
  it("has every route of the declaration, each with a unique name", () => {
    assert.sameMembers(
      operations.map(({ method, operation, pattern }) => `${operation.operationId} ${method} ${pattern}`),
      routes.map(({ method, name, pattern }) => `${name} ${method} ${pattern}`)
    )
    assert.strictEqual(new Set(routes.map(({ name }) => name)).size, routes.length)
  })

  it("has schemas that a strict validator accepts", () => {
    const { compile } = makeDocumented(document)
    const schemas = schemasOf(document)
    for (const steps of schemas) compile(steps)
    assert.isAbove(schemas.length, 200)
    assert.notInclude(JSON.stringify(document), "\"$id\"")
  })

  it("declares 415 only where a body is sent, and 413 for no GET", () => {
    const promising = (status: string) => operations.filter(({ operation }) => status in operation.responses)
    assert.notInclude(promising("413").map(({ method }) => method), "GET")
    assert.sameMembers(
      promising("415").map(({ operation }) => operation.operationId),
      routes.filter(({ payload }) => payload !== undefined).map(({ name }) => name)
    )
    assert.notProperty(named("readHealth")?.responses, "401")
  })

  it("names the credentials that each route accepts", () => {
    for (const { access, isStepUp, name } of routes) {
      const isForSessions = access === "half" || access === "own" || isStepUp
      const needed = access === "public" ? [] : isForSessions ? ["session"] : ["session", "token"]
      const { security = [] } = (named(name) ?? {}) as { readonly security?: ReadonlyArray<object> }
      assert.deepStrictEqual(security.flatMap((one) => Object.keys(one)), needed, name)
    }
    const [signIn, profiles] = ["signIn", "listProfiles"].map((name) => routes.find((one) => one.name === name)?.access)
    assert.deepStrictEqual([signIn, profiles], ["public", "viewer"])
  })

  it("declares the CSRF token as a header of changes, but not of requests that begin a session", () => {
    const having = operations.filter(({ operation }) =>
      (operation as { readonly parameters?: ReadonlyArray<{ readonly name: string }> }).parameters
        ?.some(({ name }) => name === "X-CSRF-Token")
    )
    assert.sameMembers(
      having.map(({ operation }) => operation.operationId),
      routes.filter(({ isWithoutCsrf, method }) => method !== "GET" && !isWithoutCsrf).map(({ name }) => name)
    )
    assert.notInclude(having.map(({ operation }) => operation.operationId), "signIn")
  })

  it("declares the header with the lag of a standby where a standby may answer, and nowhere else", () => {
    const having = operations.filter(({ operation }) =>
      Object.values(operation.responses as { readonly [status: string]: { readonly headers?: object } })
        .some(({ headers = {} }) => "x-acme-svc-read-lag-ms" in headers)
    )
    assert.deepStrictEqual(
      having.map(({ operation }) => operation.operationId).toSorted(),
      nouns.flatMap(({ acts }) => acts).filter(({ mayLag }) => mayLag === true).map(({ id }) => id).toSorted()
    )
    assert.include(having.map(({ operation }) => operation.operationId), "exportOrders")
  })

  it("declares Retry-After where the caller has to wait, and nowhere else", () => {
    const responses = Object.entries(document.components["responses"] ?? {})
    const waiting = responses.filter(([, one]) => "headers" in (one as object)).map(([name]) => name)
    assert.deepStrictEqual(waiting, ["Busy", "RateLimited"])
    assert.include(responses.map(([name]) => name), "ConflictNameTaken", "a response is named after its codes")
    for (const [name, one] of responses) {
      const { example, schema } = (one as { readonly content: { readonly [type: string]: Media } }).content[json] ?? {}
      assert.include(schema?.properties.error.enum ?? [], example?.error ?? "none", name)
    }
  })

  it("says which bodies may be left out", () => {
    assert.nestedPropertyVal(named("revokeOrder"), "requestBody.required", false)
    assert.nestedPropertyVal(named("createCredential"), "requestBody.required", true)
  })

  it("has a schema for both formats of a file", () => {
    const files = operations.filter(({ pattern }) => pattern.endsWith("/export"))
    assert.lengthOf(files, 5)
    for (const { operation } of files) {
      const { content } = operation.responses["200"] as { readonly content: object }
      assert.hasAllKeys(content, ["text/csv", "application/json"])
      assert.nestedProperty(content, "application/json.schema.properties.items.items.$ref")
    }
  })
})

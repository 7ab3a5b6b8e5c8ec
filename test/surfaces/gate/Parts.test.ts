import { Effect, Result } from "effect"
import { assert, describe, it } from "vitest"
import { LastAdmin } from "../../../src/domain/OperatorError.ts"
import { BodyTooLarge, BodyTooSlow, Shed } from "../../../src/engine/http/HttpRefused.ts"
import type { Request } from "../../../src/engine/http/Message.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import { sessionCookie, shownBy } from "../../../src/surfaces/operator/gate/Credentials.ts"
import { checkServicesOf } from "../../../src/surfaces/operator/gate/Entrance.ts"
import { shownFailure } from "../../../src/surfaces/operator/gate/Failures.ts"
import { isPlain, isStorable, octetsOf } from "../../../src/surfaces/operator/gate/OperatorBody.ts"
import { isForeign, isLinkFromElsewhere, originOf, samePageAt } from "../../../src/surfaces/operator/gate/Origin.ts"
import type { Guarded } from "../../../src/surfaces/operator/gate/RouteMatcher.ts"
import { isReachedByAnybody, matcherOf, routeOf } from "../../../src/surfaces/operator/gate/RouteMatcher.ts"
import { configOf, fieldsOf } from "../../support/Graph.ts"

/* The parts of the entrance, each alone. */

const sent = (headers: Request["headers"]): Request => ({
  id: "1",
  method: "GET",
  target: "/",
  path: "/",
  headers,
  clientIp: "192.0.2.1",
  userAgent: undefined,
  body: Effect.succeed(Buffer.alloc(0))
})

describe("the credential of a request", () => {
  const shown = (headers: Request["headers"]) =>
    Result.match(shownBy(sent(headers)), { onFailure: ({ _tag }) => _tag, onSuccess: (found) => found })

  it("can be nothing, a session among other cookies, or a token", () => {
    assert.deepStrictEqual(shown({}), { kind: "nothing" })
    assert.deepStrictEqual(shown({ cookie: `a=b; ${sessionCookie}x=1; ${sessionCookie}=one;c=d` }), {
      kind: "session",
      token: "one"
    })
    assert.deepStrictEqual(shown({ cookie: `${sessionCookie}="one"` }), { kind: "session", token: "one" })
    assert.deepStrictEqual(shown({ cookie: `${sessionCookie}="one` }), { kind: "session", token: "\"one" })
    assert.deepStrictEqual(shown({ cookie: `a=b; x${sessionCookie}=1` }), { kind: "nothing" })
    assert.deepStrictEqual(shown({ authorization: "bearer  abc" }), { kind: "token", token: "abc" })
  })

  it.each<Request["headers"]>([
    { cookie: `${sessionCookie}=one; ${sessionCookie}=two` },
    { cookie: `${sessionCookie}=one`, authorization: "Bearer abc" },
    { authorization: "Basic abc" },
    { authorization: "Bearer" },
    { authorization: "Bearer a b" },
    { authorization: "x Bearer abc" }
  ])("is refused as unreadable: %o", (headers) => {
    assert.strictEqual(shown(headers), "BadRequest")
  })

  it("is refused as unreadable if its header was sent twice", () => {
    assert.strictEqual(shown({ authorization: ["Bearer abc", "Bearer abc"] }), "BadRequest")
    assert.strictEqual(shown({ authorization: ["Bearer abc", ""] }), "BadRequest")
  })
})

describe("a request", () => {
  const origin = originOf("https://admin.example.org/")

  it.each<readonly [boolean, Request["headers"]]>([
    [false, {}],
    [false, { origin: "https://admin.example.org" }],
    [false, { "sec-fetch-site": "same-origin" }],
    [false, { "sec-fetch-site": "none" }],
    [true, { origin: "https://admin.example.org:8443" }],
    [true, { origin: "http://admin.example.org" }],
    [true, { origin: "null" }],
    [true, { origin: "" }],
    [true, { origin: ["https://admin.example.org", "https://admin.example.org"] }],
    [true, { "sec-fetch-site": "cross-site" }],
    [true, { "sec-fetch-site": ["same-origin", "same-origin"] }],
    [true, { origin: "https://admin.example.org", "sec-fetch-site": "cross-site" }]
  ])("comes from another site (%s) if its headers are %o", (isOther, headers) => {
    assert.strictEqual(isForeign(sent(headers), origin), isOther)
  })
})

describe("a link from another site", () => {
  const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }
  const followed = (headers: Request["headers"], path = "/ui/orders", method = "GET") =>
    isLinkFromElsewhere({ ...sent(headers), method, path, target: path })

  it("is recognised if a browser opens a page with it", () => {
    for (const path of ["/", "/ui", "/ui/", "/ui/orders/1"]) assert.isTrue(followed(link, path), path)
  })

  it.each<readonly [string, Request["headers"]]>([
    ["not by a browser", {}],
    ["of this site", { ...link, "sec-fetch-site": "same-origin" }],
    ["typed", { ...link, "sec-fetch-site": "none" }],
    ["asked for by a script", { ...link, "sec-fetch-mode": "cors" }],
    ["an image", { ...link, "sec-fetch-mode": "no-cors" }],
    ["with an origin", { ...link, origin: "https://evil.example" }],
    ["by a header that was sent twice", { ...link, "sec-fetch-site": ["cross-site", "cross-site"] }]
  ])("is not recognised if it is %s", (_, headers) => assert.isFalse(followed(headers)))

  it("is not recognised if it points to an answer for programs or makes a change", () => {
    for (const path of ["/api/orders", "/health", "/uix"]) assert.isFalse(followed(link, path), path)
    assert.isFalse(followed(link, "/ui/login", "POST"))
    assert.isFalse(followed(link, "/ui/orders", "HEAD"))
  })
})

describe("a page that was requested under another name of loopback", () => {
  const asked = (host: string, target = "/ui/orders?status=valid", method = "GET") => ({
    ...sent({ host }),
    method,
    target,
    path: target.split("?")[0] ?? ""
  })
  const at = (request: Request, base = "http://localhost:3001", isTls = false) => samePageAt(request, base, isTls)

  it("is sent to the base URL, with its query", () => {
    for (const host of ["127.0.0.1:3001", "[::1]:3001", "127.3.2.1:3001"]) {
      assert.strictEqual(at(asked(host)), "http://localhost:3001/ui/orders?status=valid")
    }
    assert.strictEqual(at(asked("localhost:3001", "/"), "http://127.0.0.1:3001"), "http://127.0.0.1:3001/")
    assert.strictEqual(at(asked("127.0.0.1", "/ui"), "https://localhost", true), "https://localhost/ui")
  })

  it("is not redirected if more than the host name differs", () => {
    for (const host of ["localhost:3001", "127.0.0.1:3002", "127.0.0.1", "admin.example:3001", "", "a b", "["]) {
      assert.isUndefined(at(asked(host)), host)
    }
    assert.isUndefined(at(asked("127.0.0.1:3001"), "http://admin.example:3001"))
    assert.isUndefined(at(asked("127.0.0.1:3001"), "http://localhost:3001", true), "what is served is not the base URL")
    for (const target of ["/health", "/api/orders", "/uix", "http://evil.example/ui/"]) {
      assert.isUndefined(at(asked("127.0.0.1:3001", target)), target)
    }
    assert.isUndefined(at(asked("127.0.0.1:3001", "/ui/login", "POST")))
  })
})

describe("a body", () => {
  it.each<readonly [boolean, Request["headers"]]>([
    [true, { "content-type": "application/json" }],
    [true, { "content-type": "application/json", "content-encoding": "identity" }],
    [false, {}],
    [false, { "content-type": "text/plain" }],
    [false, { "content-type": ["application/json", "application/json"] }],
    [false, { "content-type": "application/json", "content-encoding": "gzip" }],
    [true, { "content-type": "application/json", "content-encoding": ["identity", "Identity"] }],
    [true, { "content-type": "application/json", "content-encoding": "", "transfer-encoding": "chunked" }],
    [false, { "content-type": "application/json", "content-encoding": ["identity", "gzip"] }],
    [false, { "content-type": "application/json", "transfer-encoding": "gzip, chunked" }]
  ])("is accepted as it is (%s) if the headers are %o", (isTaken, headers) => {
    assert.strictEqual(isPlain(sent(headers), /^application\/json$/), isTaken)
  })

  it.each([
    [new BodyTooLarge(), { _tag: "BodyRefused", maxBytes: 9 }],
    [new BodyTooSlow(), { _tag: "BadRequest", detail: "The form did not arrive in time." }],
    [new Shed(), { _tag: "Busy", retryAfter: 5 }]
  ])("is refused for the reason for which it did not arrive: %o", (cause, told) => {
    const refused = Effect.runSync(Effect.flip(octetsOf({ ...sent({}), body: cause }, 9, "form")))
    assert.deepInclude<object>(refused, told)
  })

  it("may contain only texts that both databases can store", () => {
    assert.isTrue(isStorable("Łódź 😀"))
    for (const odd of ["a\u0000", "\ud83d", "a\ude00b"]) assert.isFalse(isStorable(odd), JSON.stringify(odd))
  })
})

describe("a failure of an operation", () => {
  const failed = { _tag: "SomethingElse", message: "x".repeat(5000) }

  it.each([
    [new LastAdmin({ username: "ann" }), "LastAdmin", []],
    [{ ...failed, _tag: "StorageFailed" }, "Internal", []],
    [failed, "Internal", ["x".repeat(2000)]]
  ])("is shown as a failure for operators, and is logged if it was not logged before: %o", (failure, tag, told) => {
    const records: Array<Record> = []
    const shown = Effect.runSync(Effect.provide(shownFailure(failure), layerMemory(records)))
    assert.strictEqual(shown._tag, tag)
    assert.deepStrictEqual(fieldsOf(records, "request_handler_panicked").map(({ error }) => error), told)
  })
})

describe("the reverse name of a client", () => {
  it.each([["client.example"], [undefined]])("is the one that the look-up finds: %s", (name) => {
    const known = new Map<string | undefined, string | undefined>()
    const names = {
      look: (ip: string) => Effect.sync(() => void known.set(ip, name)),
      of: (ip: string | undefined) => Effect.sync(() => known.get(ip))
    }
    const { named } = checkServicesOf(configOf().admin, { policy: undefined, names })
    const client = { ip: "192.0.2.1", request_id: "1", user_agent: undefined }
    assert.deepStrictEqual(
      Effect.runSync(named(client)),
      name === undefined ? client : { ...client, ptr: name }
    )
  })
})

describe("the routes of a surface", () => {
  const route = (method: string, pattern: string, access: Guarded["access"] = "viewer"): Guarded => ({
    method,
    pattern,
    access,
    isWithoutCsrf: false,
    isStepUp: false
  })
  const declared = [
    route("GET", "/things/{id}"),
    route("DELETE", "/things/{id}"),
    route("POST", "/things/new"),
    route("GET", "/things/{id}/parts/{name}"),
    route("GET", "/open", "public"),
    route("POST", "/open", "viewer"),
    route("GET", "/health", "public")
  ]
  const find = matcherOf(declared)

  it("read the parameters of the path, and prefer a fixed segment to a parameter", () => {
    assert.deepInclude(find("/things/a-1"), { pattern: "/things/{id}", parameters: { id: "a-1" } })
    for (const matching of [find, matcherOf(declared.toReversed())]) {
      assert.deepInclude(matching("/things/new"), { pattern: "/things/new", parameters: {} })
    }
    assert.deepStrictEqual(find("/things/a..")?.parameters, { id: "a.." })
    assert.deepStrictEqual(find("/things/a/parts/b")?.parameters, { id: "a", name: "b" })
    assert.deepStrictEqual(find("/things/..a")?.parameters, { id: "..a" })
    for (
      const path of ["/things/", "/things/.", "/things/..", "/things/...", "/things/a%2e", "/things/a/", "//things/a"]
    ) {
      assert.isUndefined(find(path), path)
    }
    assert.isUndefined(find(`/things/${"a".repeat(101)}`))
  })

  it("answer HEAD if they answer GET, and list the methods that they accept", () => {
    const told = (path: string, method: string) =>
      Result.match(routeOf(find(path), method), {
        onFailure: (error) => error._tag === "MethodRefused" ? error.allow : error._tag,
        onSuccess: ({ method: found }) => found
      })
    assert.strictEqual(told("/things/a", "HEAD"), "GET")
    assert.strictEqual(told("/things/a", "DELETE"), "DELETE")
    assert.deepStrictEqual(told("/things/a", "POST"), ["HEAD", "GET", "DELETE"])
    assert.deepStrictEqual(told("/things/new", "GET"), ["POST"])
    assert.deepStrictEqual(told("/things/new", "HEAD"), ["POST"])
    assert.strictEqual(told("/nothing", "GET"), "NoSuchRoute")
  })

  it("are open to everybody only if they are declared so", () => {
    const isOpen = (path: string, method: string) => isReachedByAnybody(find(path), method)
    assert.isTrue(isOpen("/open", "GET"))
    assert.isTrue(isOpen("/open", "HEAD"))
    assert.isFalse(isOpen("/open", "POST"))
    assert.isFalse(isOpen("/open", "PUT"))
    assert.isTrue(isOpen("/health", "PUT"))
    assert.isFalse(isOpen("/things/a", "GET"))
    assert.isFalse(isOpen("/nothing", "GET"))
  })
})

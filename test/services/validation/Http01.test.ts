import { describe, it } from "@effect/vitest"
import { Array, Effect, Exit, Fiber, Layer, Ref, Result } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { assert } from "vitest"
import type { DnsName } from "../../../src/domain/Identifier.ts"
import { normalizeIdentifier } from "../../../src/domain/Identifier.ts"
import { makeAddressPolicy } from "../../../src/engine/net/Address.ts"
import { AlpnPeer } from "../../../src/engine/net/AlpnPeer.ts"
import { ConnectFailed, TlsFailed } from "../../../src/engine/net/Connect.ts"
import type { HttpAnswer, HttpGetFailed, HttpGetRequest } from "../../../src/engine/net/HttpGet.ts"
import { ExchangeFailed, HttpGet } from "../../../src/engine/net/HttpGet.ts"
import { ResolveFailed, Resolver } from "../../../src/engine/net/Resolver.ts"
import type { Record as LogRecord } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import type { ChallengePolicy } from "../../../src/services/validation/Attempt.ts"
import { Validator } from "../../../src/services/validation/Validator.ts"
import { deniedByDefault } from "../../settings/Samples.ts"
import { unasked } from "../../support/DnsAnswerer.ts"
import { runsOf, seedOf } from "../../support/Fuzz.ts"

const token = "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJyPCt92wr-oA"
const keyAuthorization = `${token}.9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI`
const path = `/.well-known/acme-challenge/${token}`

const nameOf = (text: string): DnsName => {
  const result = normalizeIdentifier(text, { dns01Enabled: false })
  return Result.isSuccess(result) ? result.success : assert.fail(text)
}

const defaults: ChallengePolicy = {
  timeout_ms: 5000,
  allow_loopback: true,
  denied_addresses: deniedByDefault,
  allowed_addresses: [],
  http_01: { port: 80, https_port: 443, follow_redirects: true, max_redirects: 5, max_response_bytes: 4096 },
  tls_alpn_01: { port: 443 }
}

const body = (content: string | Buffer, status = 200): HttpAnswer => ({
  status,
  location: undefined,
  body: Buffer.from(content),
  truncated: false
})
const redirect = (location: string | undefined, status = 302): HttpAnswer => ({
  status,
  location,
  body: Buffer.alloc(0),
  truncated: false
})

type Script = (request: HttpGetRequest) => Effect.Effect<HttpAnswer, HttpGetFailed>

interface World {
  readonly zone?: Record<string, ReadonlyArray<string> | ResolveFailed>
  readonly resolver?: Layer.Layer<Resolver>
  readonly script?: Script
  readonly identifier?: string
  /** The addresses of the service's own host. */
  readonly own?: ReadonlyArray<string>
  readonly challenge?: Partial<Omit<ChallengePolicy, "http_01">>
  readonly http_01?: Partial<ChallengePolicy["http_01"]>
}

/** Makes one attempt with doubles. Returns its verdict, every request and every log record. */
const attempt = (world: World) =>
  Effect.gen(function*() {
    const requests: Array<HttpGetRequest> = []
    const records: Array<LogRecord> = []
    const script: Script = world.script ?? (() => Effect.succeed(body(keyAuthorization)))
    const outside = Layer.mergeAll(
      AlpnPeer.layerScripted(() => Effect.die("http-01 makes no such handshake")),
      world.resolver ?? Resolver.layerStatic(world.zone ?? { "a.example": ["192.0.2.1"] }),
      HttpGet.layerScripted((request) =>
        Effect.suspend(() => {
          requests.push(request)
          return script(request)
        })
      )
    )
    const verdict = yield* Effect.flatMap(Validator, (validator) =>
      validator.validate({
        type: "http-01",
        identifier: nameOf(world.identifier ?? "a.example"),
        keyAuthorization,
        challenge: { ...defaults, ...world.challenge, http_01: { ...defaults.http_01, ...world.http_01 } }
      })).pipe(
        Effect.match({
          onFailure: (failure) =>
            failure._tag === "ChallengeRefused" ? `${failure.error} ${failure.reason}` : failure._tag,
          onSuccess: () => "valid"
        }),
        Effect.provide(Validator.layer(world.own).pipe(Layer.provide(outside))),
        Effect.provide(layerMemory(records))
      )
    return {
      verdict,
      requests,
      dialled: requests.map(({ address }): string => address),
      records,
      events: records.map(({ event }) => event),
      fieldsOf: (event: string) => records.filter((record) => record.event === event).map(({ fields }) => fields)
    }
  })

/** Answers by the path and query of a URL, and with the key authorization for any other path. */
const routed = (routes: Record<string, HttpAnswer>): Script => (request) =>
  Effect.succeed(
    routes[`${request.secure ? "https" : "http"} ${request.host}${request.path}`] ??
      routes[request.path] ?? body(keyAuthorization)
  )

describe("the request", () => {
  it.effect("asks the identifier's host for the token", () =>
    Effect.gen(function*() {
      const { events, fieldsOf, requests, verdict } = yield* attempt({})
      assert.strictEqual(verdict, "valid")
      assert.deepStrictEqual<ReadonlyArray<unknown>>(requests, [{
        address: "192.0.2.1",
        port: 80,
        connectMillis: undefined,
        secure: false,
        host: "a.example",
        path,
        maxBytes: 4096
      }])
      assert.deepStrictEqual(events, ["challenge_http_01_loaded", "challenge_http_01_matched"])
      assert.deepStrictEqual(fieldsOf("challenge_http_01_loaded"), [
        { identifier: "a.example", address: "192.0.2.1", status: 200, hop: 0, body_bytes: keyAuthorization.length }
      ])
      assert.deepStrictEqual(fieldsOf("challenge_http_01_matched"), [{ identifier: "a.example", elapsed_ms: 0 }])
    }))

  it.effect("goes to the configured port, and its Host header has only the identifier", () =>
    Effect.gen(function*() {
      const { requests } = yield* attempt({ http_01: { port: 5002 } })
      assert.deepStrictEqual(requests.map(({ host, port }) => [host, port]), [["a.example", 5002]])
    }))
})

it.effect("the validation by http-01 works for a name with characters that are newer than the runtime's URL class", () =>
  Effect.gen(function*() {
    const identifier = "xn--9b1e.example" // U+14161, Unicode 16
    const zone = { [identifier]: ["192.0.2.1"], "a.example": ["192.0.2.2"] }
    assert.strictEqual((yield* attempt({ identifier, zone })).verdict, "valid")
    const absolute = routed({ [`http ${identifier}${path}`]: redirect("http://a.example/") })
    assert.strictEqual((yield* attempt({ identifier, zone, script: absolute })).verdict, "valid")
  }))

describe("the choice of an address", () => {
  it.effect("gives the error connection and opens no connection if the name resolves to a denied address, or to its mapped, NAT64 or 6to4 form", () =>
    Effect.gen(function*() {
      for (const address of ["169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"]) {
        const { dialled, events, fieldsOf, verdict } = yield* attempt({ zone: { "a.example": [address] } })
        assert.strictEqual(verdict, "connection address_denied")
        assert.deepStrictEqual(dialled, [])
        assert.deepStrictEqual(events, ["challenge_address_denied", "challenge_validation_failed"])
        assert.strictEqual(fieldsOf("challenge_address_denied")[0]?.["rule"], "169.254.0.0/16")
      }
    }))

  it.effect("skips the denied addresses of a name with several addresses", () =>
    Effect.gen(function*() {
      const denied = Array.makeBy(9, (n) => `fe80::${n + 1}`)
      const { dialled, fieldsOf, verdict } = yield* attempt({ zone: { "a.example": [...denied, "192.0.2.1"] } })
      assert.deepStrictEqual([verdict, dialled], ["valid", ["192.0.2.1"]])
      assert.lengthOf(fieldsOf("challenge_address_denied"), 4)
    }))

  it.effect("refuses loopback and the service's own addresses in any notation unless they are allowed", () =>
    Effect.gen(function*() {
      const own = ["198.51.100.9", "2001:db8::9"]
      const spellings = ["::ffff:127.0.0.1", "64:ff9b::c633:6409"]
      for (const address of ["127.0.0.1", "127.255.0.3", "::1", ...own, ...spellings]) {
        const zone = { "a.example": [address] }
        const { dialled, verdict } = yield* attempt({ zone, own, challenge: { allow_loopback: false } })
        assert.deepStrictEqual([verdict, dialled], ["connection address_denied", []], address)
        assert.strictEqual((yield* attempt({ zone, own })).verdict, "valid", address)
      }
      for (const address of ["198.51.100.8", "10.0.0.1", "2001:db8::8"]) {
        const zone = { "a.example": [address] }
        const { verdict } = yield* attempt({ zone, own, challenge: { allow_loopback: false } })
        assert.strictEqual(verdict, "valid", address)
      }
    }))

  it.effect("uses private addresses by default, and refuses them if they are denied", () =>
    Effect.gen(function*() {
      for (const address of ["10.0.0.1", "192.168.0.1", "fd00::1"]) {
        const zone = { "a.example": [address] }
        assert.strictEqual((yield* attempt({ zone })).verdict, "valid")
        const { dialled, verdict } = yield* attempt({ zone, challenge: { denied_addresses: [address] } })
        assert.deepStrictEqual([verdict, dialled], ["connection address_denied", []])
        const elsewhere = yield* attempt({ zone, challenge: { allowed_addresses: ["198.51.100.0/24"] } })
        assert.deepStrictEqual([elsewhere.verdict, elsewhere.dialled], ["connection address_denied", []])
      }
    }))

  it.effect("considers at most 64 addresses of each family, however many the name has", () =>
    Effect.gen(function*() {
      const many = (allowed: ReadonlyArray<string>) => ({
        "a.example": [...Array.makeBy(64, (n) => `10.0.0.${n}`), ...allowed]
      })
      const challenge = { denied_addresses: ["10.0.0.0/8"] }
      const behind = yield* attempt({ zone: many(["192.0.2.1"]), challenge })
      assert.strictEqual(behind.verdict, "connection address_denied")
      const other = yield* attempt({ zone: many(["2001:db8::1"]), challenge })
      assert.deepStrictEqual([other.verdict, other.dialled], ["valid", ["2001:db8::1"]])
      const twice = { "a.example": [...Array.makeBy(100, () => "10.0.0.1"), "192.0.2.1"] }
      assert.deepStrictEqual((yield* attempt({ zone: twice, challenge })).dialled, ["192.0.2.1"])
    }))

  it.effect("looks up the name once and uses the checked address, even if a second answer would be private", () =>
    Effect.gen(function*() {
      const lookups = yield* Ref.make(0)
      const [first, second] = [["192.0.2.1"], ["169.254.169.254"]]
      const resolver = Layer.effect(
        Resolver,
        Effect.map(
          Effect.all([
            Effect.provide(Resolver, Resolver.layerStatic({ a: first })),
            Effect.provide(Resolver, Resolver.layerStatic({ a: second }))
          ]),
          ([one, two]) =>
            Resolver.of({
              ...one,
              addresses: () =>
                Effect.flatMap(Ref.getAndUpdate(lookups, (n) => n + 1), (n) => (n === 0 ? one : two).addresses("a"))
            })
        )
      )
      const { dialled, verdict } = yield* attempt({ resolver })
      assert.deepStrictEqual([verdict, dialled, yield* Ref.get(lookups)], ["valid", ["192.0.2.1"], 1])
    }))

  it.effect("gives the error connection if there is no address or the name server fails", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* attempt({ zone: {} })).verdict, "connection no_address")
      const failing = { "a.example": new ResolveFailed({ name: "a.example", code: "ESERVFAIL" }) }
      assert.strictEqual((yield* attempt({ zone: failing })).verdict, "connection resolve_failed")
    }))

  /** Acts as an address that accepts no connection within the time that the validation gives it. */
  const deaf: Script = ({ connectMillis }) =>
    connectMillis === undefined
      ? Effect.never
      : Effect.andThen(Effect.sleep(connectMillis), new ConnectFailed({ detail: "no connection" }))
  const ten = [...Array.makeBy(5, (n) => `192.0.2.${n}`), ...Array.makeBy(5, (n) => `2001:db8::${n + 1}`)]

  it.effect("postpones the challenge if the process was stopped during the time limit of an address", () =>
    Effect.gen(function*() {
      for (const [late, verdict] of [[1000, "connection connect_failed"], [1001, "ChallengePostponed"]] as const) {
        const zone = { "a.example": ["192.0.2.1", "192.0.2.2"] }
        const script: Script = ({ connectMillis }) =>
          Effect.andThen(
            connectMillis === undefined ? Effect.void : TestClock.adjust(connectMillis + late),
            new ConnectFailed({ detail: "no connection" })
          )
        assert.strictEqual((yield* attempt({ zone, script })).verdict, verdict)
      }
    }))

  it.effect("tries the second of ten addresses within the time limit if the first is unreachable", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(attempt({
        zone: { "a.example": ten },
        script: (request) => request.address === "2001:db8::1" ? deaf(request) : Effect.succeed(body(keyAuthorization))
      }))
      yield* TestClock.adjust(1250)
      const { dialled, fieldsOf, verdict } = yield* Fiber.join(fiber)
      assert.deepStrictEqual([verdict, dialled], ["valid", ["2001:db8::1", "2001:db8::2"]])
      assert.strictEqual(fieldsOf("challenge_http_01_matched")[0]?.["elapsed_ms"], 1250)
    }))

  it.effect("tries at most 4 of ten unreachable addresses within the time limit, IPv6 first", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(attempt({ zone: { "a.example": ten }, script: deaf }))
      yield* TestClock.adjust(5000)
      const { dialled, requests, verdict } = yield* Fiber.join(fiber)
      assert.strictEqual(verdict, "connection timeout")
      assert.deepStrictEqual(dialled, ["2001:db8::1", "2001:db8::2", "2001:db8::3", "192.0.2.0"])
      assert.deepStrictEqual(requests.map(({ connectMillis }) => connectMillis), [1250, 1250, 1250, undefined])
    }))

  it.effect("gives the time that an address does not need to the next addresses", () =>
    Effect.gen(function*() {
      const { fieldsOf, requests, verdict } = yield* attempt({
        zone: { "a.example": ["2001:db8::1", "192.0.2.1", "192.0.2.2"] },
        script: () => new ConnectFailed({ detail: "refused" })
      })
      assert.strictEqual(verdict, "connection connect_failed")
      assert.deepStrictEqual(fieldsOf("challenge_validation_failed").map(({ error }) => error), [
        "2001:db8::1 port 80: refused; 192.0.2.1 port 80: refused; 192.0.2.2 port 80: refused"
      ])
      assert.deepStrictEqual(requests.map(({ connectMillis }) => connectMillis), [1666, 2500, undefined])
    }))

  it.effect("ends with the first established connection, whatever happens on that connection", () =>
    Effect.gen(function*() {
      const zone = { "a.example": ["2001:db8::1", "192.0.2.1"] }
      const rows = [
        ["connection exchange_failed", new ExchangeFailed({ detail: "reset" })],
        ["connection tls_failed", new TlsFailed({ detail: "handshake" })],
        ["unauthorized status", Effect.succeed(body(keyAuthorization, 404))]
      ] as const
      for (const [expected, outcome] of rows) {
        const { dialled, verdict } = yield* attempt({ zone, script: () => outcome })
        assert.deepStrictEqual([verdict, dialled], [expected, ["2001:db8::1"]])
      }
    }))
})

describe("a redirect that is not followed", () => {
  const rows: Record<string, string | undefined> = {
    "another port": "http://a.example:8080/",
    "another port over https": "https://a.example:8443/",
    "port 0": "http://a.example:0/",
    "ftp:": "ftp://a.example/",
    "file:": "file:///etc/passwd",
    "gopher:": "gopher://a.example/",
    "data:": `data:text/plain,${keyAuthorization}`,
    "javascript:": "javascript:alert(1)",
    "no Location": undefined,
    "empty Location": "",
    "blank Location": "  ",
    "userinfo": "http://user:secret@a.example/",
    "user alone": "http://user@a.example/",
    "empty userinfo": "http://@a.example/",
    "empty user and password": "//:@a.example/",
    "CRLF": "http://a.example/\r\nX: y",
    "CRLF, encoded": "http://a.example/%0d%0aX: y",
    "U+0000": "http://a.example/\0",
    "self-loop": path,
    "self-loop with a fragment": `${path}#again`,
    "self-loop by another spelling": `HTTP://A.EXAMPLE:80${path}`,
    "denied literal": "http://169.254.169.254/",
    "denied literal as a number": "http://2852039166/",
    "denied literal in hexadecimal": "http://0xa9.0xfe.43518/",
    "denied literal, mapped": "http://[::ffff:169.254.169.254]/",
    "denied literal, NAT64": "http://[64:ff9b::a9fe:a9fe]/",
    "denied literal, full-width": "http://\uff11\uff16\uff19.254.169.254/",
    "a name with a denied address": "http://inside.example/",
    "a name without address": "http://absent.example/",
    "no URL": "http://[/",
    "no host": "http:///"
  }
  for (const [row, location] of Object.entries(rows)) {
    it.effect(`gives the error connection and opens no other connection in the case "${row}"`, () =>
      Effect.gen(function*() {
        const { dialled, events, records, verdict } = yield* attempt({
          zone: { "a.example": ["192.0.2.1"], "inside.example": ["169.254.169.254"] },
          script: routed({ [path]: redirect(location) })
        })
        assert.match(verdict, /^connection (?:redirect_|address_denied|no_address)/)
        assert.deepStrictEqual(dialled, ["192.0.2.1"])
        assert.include(events, "challenge_http_01_redirect")
        assert.strictEqual(events.at(-1), "challenge_validation_failed")
        assert.notInclude(JSON.stringify(records), token)
      }))
  }

  it.effect(
    "reaches a verdict without a connection to a denied address or another port, whatever its target is",
    () =>
      Effect.gen(function*() {
        const pieces = fc.oneof(
          fc.constantFrom(
            "http:",
            "https:",
            "HTTP:",
            "ftp:",
            "file:",
            "data:",
            "//",
            "/",
            "\\",
            "@",
            ":",
            "?",
            "#",
            "%0d%0a",
            "\r\n",
            "a.example",
            "inside.example",
            "169.254.169.254",
            "2852039166",
            "0xa9fea9fe",
            "[::ffff:a9fe:a9fe]",
            "[64:ff9b::a9fe:a9fe]",
            "[2002:a9fe:a9fe::]",
            "0",
            "127.1",
            ":80",
            ":443",
            ":22",
            ":0",
            ":99999",
            ".",
            "..",
            "%2e",
            "\t",
            " ",
            "\0",
            "user:secret",
            "[",
            "]",
            "\u3002",
            "\uff11",
            path
          ),
          fc.fullUnicodeString({ maxLength: 5 })
        )
        const hosts = fc.constantFrom(
          "a.example",
          "inside.example",
          "169.254.169.254",
          "2852039166",
          "[::ffff:a9fe:a9fe]",
          "[64:ff9b::a9fe:a9fe]",
          "[2002:a9fe:a9fe::]",
          "0"
        )
        const ports = fc.constantFrom("", "", ":80", ":443", ":22", ":0")
        const locations = fc.oneof(
          fc.webUrl({ validSchemes: ["http", "https", "ftp"], withQueryParameters: true }),
          fc.array(pieces, { minLength: 1, maxLength: 6 }).map((parts) => parts.join("")),
          fc.tuple(fc.constantFrom("http://", "https://", "//"), hosts, ports).map((parts) => `${parts.join("")}/`),
          fc.tuple(
            fc.constantFrom("http://", "https://", "//"),
            fc.array(pieces, { maxLength: 4 })
          )
            .map(([scheme, parts]) => scheme + parts.join(""))
        )
        const policy = makeAddressPolicy({ denied: defaults.denied_addresses, allowed: defaults.allowed_addresses })
        const verdicts = new Set<string>()
        for (const location of fc.sample(locations, { numRuns: runsOf(400), seed: seedOf(7230) })) {
          const { requests, verdict } = yield* attempt({
            zone: { "a.example": ["192.0.2.1"], "inside.example": ["169.254.169.254", "::ffff:169.254.169.254"] },
            script: ({ path: at }) => Effect.succeed(at === path ? redirect(location) : body(keyAuthorization))
          })
          for (const { address, host, path: asked, port } of requests) {
            const said = JSON.stringify({ location, address, host, asked, port })
            assert.isUndefined(policy.check(address), said)
            assert.include([80, 443], port, said)
            assert.notMatch(host, /[^a-z0-9.:_[\]-]/, said)
            assert.notMatch(asked, /[\0-\x20\x7f-\uffff]/, said)
          }
          assert.match(verdict, /^(?:valid$|connection |unauthorized )/, location)
          verdicts.add(verdict.split(" ")[0] ?? "")
        }
        assert.includeMembers([...verdicts], ["valid", "connection"])
      })
  )

  it.effect("gives the error connection if it is the sixth", () =>
    Effect.gen(function*() {
      const hops = (count: number): Script => ({ path: at }) => {
        const done = at === path ? 0 : Number(at.slice(1))
        return Effect.succeed(done === count ? body(keyAuthorization) : redirect(`/${done + 1}`))
      }
      const five = yield* attempt({ script: hops(5) })
      assert.deepStrictEqual([five.verdict, five.requests.length], ["valid", 6])
      assert.strictEqual(five.fieldsOf("challenge_http_01_loaded")[0]?.["hop"], 5)
      assert.deepStrictEqual(five.fieldsOf("challenge_http_01_redirect").map(({ hop }) => hop), [0, 1, 2, 3, 4])
      assert.deepInclude(five.fieldsOf("challenge_http_01_redirect")[0], { status: 302, body_bytes: 0 })
      const six = yield* attempt({ script: hops(6) })
      assert.deepStrictEqual([six.verdict, six.requests.length], ["connection redirect_limit", 6])
      const none = yield* attempt({ script: hops(1), http_01: { max_redirects: 0 } })
      assert.deepStrictEqual([none.verdict, none.requests.length], ["connection redirect_limit", 1])
    }))

  it.effect("gives the error connection if it closes a loop of two", () =>
    Effect.gen(function*() {
      const { requests, verdict } = yield* attempt({ script: routed({ [path]: redirect("/b"), "/b": redirect(path) }) })
      assert.deepStrictEqual([verdict, requests.length], ["connection redirect_loop", 2])
    }))

  it.effect("is any redirect if follow_redirects is off", () =>
    Effect.gen(function*() {
      const { requests, verdict } = yield* attempt({
        script: routed({ [path]: redirect("/b") }),
        http_01: { follow_redirects: false }
      })
      assert.deepStrictEqual([verdict, requests.length], ["connection redirect_refused", 1])
    }))
})

it.effect("the validation by http-01 gives the error unauthorized after a redirect with 300, 303, 304, 305 or a Refresh header", () =>
  Effect.gen(function*() {
    for (const status of [300, 303, 304, 305, 306, 399, 201]) {
      const { requests, verdict } = yield* attempt({ script: routed({ [path]: redirect("/b", status) }) })
      assert.deepStrictEqual([verdict, requests.length], ["unauthorized status", 1])
    }
    const refresh = yield* attempt({ script: () => Effect.succeed(body("<meta http-equiv=refresh content='0;/b'>")) })
    assert.deepStrictEqual([refresh.verdict, refresh.requests.length], ["unauthorized body_mismatch", 1])
  }))

describe("a redirect that is followed", () => {
  const rows: Record<string, readonly [string, Pick<HttpGetRequest, "host" | "path" | "port" | "secure">]> = {
    "a relative path": ["/b?c=d#e", { host: "a.example", path: "/b?c=d", port: 80, secure: false }],
    "a path relative to the token": ["b", {
      host: "a.example",
      path: "/.well-known/acme-challenge/b",
      port: 80,
      secure: false
    }],
    "a query alone": ["?x", { host: "a.example", path: `${path}?x`, port: 80, secure: false }],
    "//host": ["//b.example/c", { host: "b.example", path: "/c", port: 80, secure: false }],
    "upper-case scheme": ["HTTP://B.example/c", { host: "b.example", path: "/c", port: 80, secure: false }],
    "https": ["https://b.example/c", { host: "b.example", path: "/c", port: 443, secure: true }],
    "https on the http port": ["https://b.example:80/", { host: "b.example:80", path: "/", port: 80, secure: true }],
    "http on the https port": ["http://b.example:443/", { host: "b.example:443", path: "/", port: 443, secure: false }],
    "an IPv4 literal": ["http://192.0.2.2/c", { host: "192.0.2.2", path: "/c", port: 80, secure: false }],
    "an IPv6 literal, its brackets kept in Host": [
      "https://[2001:db8::2]/c",
      { host: "[2001:db8::2]", path: "/c", port: 443, secure: true }
    ],
    "a name beyond ASCII": ["http://bücher.example/ü", {
      host: "xn--bcher-kva.example",
      path: "/%C3%BC",
      port: 80,
      secure: false
    }]
  }
  const zone = {
    "a.example": ["192.0.2.1"],
    "b.example": ["192.0.2.2"],
    "xn--bcher-kva.example": ["192.0.2.2"]
  }
  for (const [row, [location, expected]] of Object.entries(rows)) {
    it.effect(`may have the form "${row}"`, () =>
      Effect.gen(function*() {
        const first = routed({ [`http a.example${path}`]: redirect(location) })
        const { requests, verdict } = yield* attempt({ zone, script: first })
        assert.strictEqual(verdict, "valid")
        const { host, path: at, port, secure } = requests[1] ?? assert.fail("not followed")
        assert.deepStrictEqual({ host, path: at, port, secure }, expected)
      }))
  }

  for (const status of [301, 302, 307, 308]) {
    it.effect(`may have the status ${status}`, () =>
      Effect.gen(function*() {
        const { requests, verdict } = yield* attempt({ script: routed({ [path]: redirect("/b", status) }) })
        assert.deepStrictEqual([verdict, requests.length], ["valid", 2])
      }))
  }

  it.effect("uses the configured port of the scheme if the URL has no port", () =>
    Effect.gen(function*() {
      const { requests, verdict } = yield* attempt({
        http_01: { port: 5002, https_port: 5001 },
        script: routed({
          [path]: redirect("/b"),
          "/b": redirect("https://a.example/c"),
          "/c": redirect("http://a.example:5002/d")
        })
      })
      assert.strictEqual(verdict, "valid")
      assert.deepStrictEqual(requests.map(({ host, port, secure }) => [host, port, secure]), [
        ["a.example", 5002, false],
        ["a.example:5002", 5002, false],
        ["a.example", 5001, true],
        ["a.example:5002", 5002, false]
      ])
    }))

  it.effect("has its host name resolved and checked again", () =>
    Effect.gen(function*() {
      const { dialled, verdict } = yield* attempt({
        zone: { "a.example": ["192.0.2.1"], "b.example": ["169.254.169.254", "192.0.2.2"] },
        script: routed({ [`http a.example${path}`]: redirect("http://b.example/") })
      })
      assert.deepStrictEqual([verdict, dialled], ["valid", ["192.0.2.1", "192.0.2.2"]])
    }))
})

describe("the body of an answer", () => {
  const served = (content: string | Buffer, status = 200, http_01: World["http_01"] = {}) =>
    Effect.map(
      attempt({ http_01, script: () => Effect.succeed(body(content, status)) }),
      ({ verdict }) => verdict
    )

  for (const status of [201, 204, 206, 404, 500]) {
    it.effect(`gives the error unauthorized with status ${status}, even if it is the key authorization`, () =>
      Effect.map(served(keyAuthorization, status), (verdict) => assert.strictEqual(verdict, "unauthorized status")))
  }

  const right: Record<string, string> = {
    "key authorization": keyAuthorization,
    "followed by CRLF": `${keyAuthorization}\r\n`,
    "followed by spaces": `${keyAuthorization}    `,
    "between ASCII whitespace": `\t\n\v\f\r ${keyAuthorization}\t\n\v\f\r `
  }
  for (const [row, content] of Object.entries(right)) {
    it.effect(`is valid in the case "${row}"`, () =>
      Effect.map(served(content), (verdict) => assert.strictEqual(verdict, "valid")))
  }

  const wrong: Record<string, string | Buffer> = {
    "empty": "",
    "whitespace": " \n",
    "byte order mark": `\ufeff${keyAuthorization}`,
    "byte order mark at the end": `${keyAuthorization}\ufeff`,
    "no-break space": `${keyAuthorization}\u00a0`,
    "U+0000": `${keyAuthorization}\0`,
    "UTF-16": Buffer.from(keyAuthorization, "utf16le"),
    "compressed": Buffer.from([0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0]),
    "other case": keyAuthorization.toUpperCase(),
    "one character more": `${keyAuthorization}a`,
    "twice": `${keyAuthorization} ${keyAuthorization}`,
    "key authorization of another account, of the upstream account": `${token}.${"A".repeat(43)}`,
    "key authorization for another token": `${"A".repeat(43)}.9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI`,
    "its digest": "vLpYdrP2dqGCA8kH0dYUWWMPnfYmBDT9xJkWyHyTg0c"
  }
  for (const [row, content] of Object.entries(wrong)) {
    it.effect(`gives the error unauthorized in the case "${row}"`, () =>
      Effect.map(served(content), (verdict) => assert.strictEqual(verdict, "unauthorized body_mismatch")))
  }

  it.effect("gives the error unauthorized and is not compared if spaces or other text after the key authorization exceed the limit", () =>
    Effect.gen(function*() {
      const filled = keyAuthorization.padEnd(4096)
      const { events, fieldsOf, verdict } = yield* attempt({
        script: () => Effect.succeed({ ...body(filled), truncated: true })
      })
      assert.strictEqual(verdict, "unauthorized body_too_large")
      assert.deepStrictEqual(events, [
        "challenge_http_01_loaded",
        "challenge_http_01_mismatch",
        "challenge_http_01_mismatch_body",
        "challenge_validation_failed"
      ])
      assert.deepStrictEqual(fieldsOf("challenge_http_01_mismatch"), [
        { identifier: "a.example", status: 200, body_bytes: 4096 }
      ])
    }))

  it.effect("is quoted in the log in a shortened form, without the token and the key authorization", () =>
    Effect.gen(function*() {
      const content = `${keyAuthorization} and ${token}.other ${"x".repeat(4000)}`
      const { fieldsOf, records } = yield* attempt({ script: () => Effect.succeed(body(content)) })
      const preview = String(fieldsOf("challenge_http_01_mismatch_body")[0]?.["body_preview"])
      assert.match(preview, /^<key authorization> and <token>\.other x+$/)
      assert.lengthOf(preview, 500)
      assert.notInclude(JSON.stringify(records), token)
    }))
})

describe("the time of a validation by http-01", () => {
  it.effect("is limited by challenge.timeout_ms, after which a request without progress is ended", () =>
    Effect.gen(function*() {
      const ended = yield* Ref.make(false)
      const fiber = yield* Effect.forkChild(
        attempt({ script: () => Effect.onInterrupt(Effect.never, () => Ref.set(ended, true)) })
      )
      yield* TestClock.adjust(4999)
      assert.isFalse(yield* Ref.get(ended))
      yield* TestClock.adjust(1)
      const { events, fieldsOf, verdict } = yield* Fiber.join(fiber)
      assert.isTrue(yield* Ref.get(ended))
      assert.strictEqual(verdict, "connection timeout")
      assert.deepStrictEqual(events, ["challenge_validation_timeout"])
      assert.deepStrictEqual(fieldsOf("challenge_validation_timeout"), [
        { identifier: "a.example", elapsed_ms: 5000, error: "192.0.2.1 port 80 did not answer" }
      ])
    }))

  it.effect("is shared by all redirects", () =>
    Effect.gen(function*() {
      const slow: Script = ({ path: at }) => Effect.delay(Effect.succeed(redirect(`${at}x`)), 2000)
      const fiber = yield* Effect.forkChild(attempt({ script: slow }))
      yield* TestClock.adjust(5000)
      const { requests, verdict } = yield* Fiber.join(fiber)
      assert.deepStrictEqual([verdict, requests.length], ["connection timeout", 3])
    }))

  it.effect("is limited by challenge.timeout_ms if a name server does not answer", () =>
    Effect.gen(function*() {
      const resolver = Layer.succeed(Resolver, { ...unasked, addresses: () => Effect.never })
      const fiber = yield* Effect.forkChild(attempt({ resolver }))
      yield* TestClock.adjust(5000)
      assert.strictEqual((yield* Fiber.join(fiber)).verdict, "connection timeout")
    }))

  it.effect("is over without a verdict if the job is interrupted", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(attempt({ script: () => Effect.never }))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
    }))
})

it.effect("the simulated validator decides according to its script", () =>
  Effect.gen(function*() {
    const validator = yield* Validator
    yield* validator.validate({
      type: "http-01",
      identifier: nameOf("a.example"),
      keyAuthorization,
      challenge: defaults
    })
  }).pipe(
    Effect.provide(
      Validator.layerScripted(({ identifier }) =>
        Effect.sync(() => assert.strictEqual<string>(identifier, "a.example"))
      )
    )
  ))

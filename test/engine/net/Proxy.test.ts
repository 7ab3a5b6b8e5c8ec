import { Redacted } from "effect"
import { assert, describe, it } from "vitest"
import type { ProxySource } from "../../../src/engine/net/Proxy.ts"
import { isExemption, makeExempt, makeProxies, maskedProxy, parseProxy } from "../../../src/engine/net/Proxy.ts"

const none: ProxySource = { http_url: "", https_url: "", no_proxy: [] }
const at = (host: string): ProxySource => ({
  http_url: `http://${host}:1`,
  https_url: `http://${host}:2`,
  no_proxy: []
})

describe("the URL of a forward proxy", () => {
  it("has a host, a port, which is 80 by default, and optionally a user", () => {
    assert.deepInclude(parseProxy("http://proxy.example:3128"), { host: "proxy.example", port: 3128 })
    assert.deepInclude(parseProxy("HTTP://[2001:db8::1]/"), { host: "2001:db8::1", port: 80 })
    const { authorization } = parseProxy("http://me:p%40ss%3A@proxy.example") ?? {}
    assert.strictEqual(authorization && Redacted.value(authorization), `Basic ${btoa("me:p@ss:")}`)
    assert.notInclude(JSON.stringify(parseProxy("http://me:secret@proxy.example")), "secret")
  })

  it("may contain nothing else", () => {
    for (
      const text of [
        "",
        "proxy",
        "https://p",
        "socks5://p",
        "http://p/x",
        "http://p?x",
        "http://p#x",
        "http://a%@p",
        "http://p:99999"
      ]
    ) {
      assert.isUndefined(parseProxy(text), text)
    }
  })

  it("is shown without its user", () => {
    assert.strictEqual(maskedProxy("http://me:secret@proxy.example:1"), "http://proxy.example:1")
    assert.strictEqual(maskedProxy("http://me:se@cret@proxy.example:1"), "http://proxy.example:1")
    assert.strictEqual(maskedProxy("http://proxy.example:1"), "http://proxy.example:1")
  })
})

describe("the list of hosts that are reached directly", () => {
  const isExempt = makeExempt([
    "example.org",
    ".lab.example",
    "10.0.0.0/8",
    "192.0.2.7",
    "2001:db8::/32",
    "UPPER.example"
  ])

  it.each([
    ["example.org", true],
    ["EXAMPLE.org.", true],
    ["a.b.example.org", true],
    ["notexample.org", false],
    ["lab.example", true],
    ["x.lab.example", true],
    ["upper.example", true],
    ["10.1.2.3", true],
    ["11.1.2.3", false],
    ["192.0.2.7", true],
    ["192.0.2.8", false],
    ["::ffff:10.1.2.3", true],
    ["[2001:db8::1]", true],
    ["2001:db9::1", false],
    ["10.1.2.3.example", false]
  ])("is checked for %s with the result %s", (host, expected) => {
    assert.strictEqual(isExempt(host), expected)
  })

  it("always contains the loopback interface, and contains everything if it has *", () => {
    for (const host of ["localhost", "a.localhost", "LOCALHOST.", "127.0.0.1", "127.255.0.1", "[::1]", "::1"]) {
      assert.isTrue(makeExempt([])(host), host)
    }
    assert.isFalse(makeExempt([])("example.org"))
    for (const host of ["example.org", "192.0.2.1"]) assert.isTrue(makeExempt(["*"])(host), host)
  })

  it("may not contain ports", () => {
    for (const entry of ["*", "a", "example.org", ".example.org", "10.0.0.1", "10.0.0.0/8", "::1"]) {
      assert.isTrue(isExemption(entry), entry)
    }
    for (const entry of ["", "a:1", "10.0.0.1:1", "[::1]", "*.a", "a/b", "http://a"]) {
      assert.isFalse(isExemption(entry), entry)
    }
  })
})

describe("the proxies in use", () => {
  const hostOf = (
    proxies: ReturnType<typeof makeProxies>,
    which: "outbound" | "configured",
    scheme: "http" | "https"
  ) => proxies[which](scheme, "example.org")?.host

  it("come from the configuration or else from the environment, which validations ignore", () => {
    const mixed = makeProxies({ ...at("config"), https_url: "" }, at("environment"))
    assert.strictEqual(hostOf(mixed, "outbound", "http"), "config")
    assert.strictEqual(hostOf(mixed, "outbound", "https"), "environment")
    assert.strictEqual(hostOf(mixed, "configured", "http"), "config")
    assert.isUndefined(hostOf(mixed, "configured", "https"))
    const shared = makeProxies(none, at("environment"))
    assert.strictEqual(hostOf(shared, "outbound", "http"), "environment")
    assert.isUndefined(hostOf(shared, "configured", "http"))
  })

  it("are logged with their source and without their users, and are not logged if there are none", () => {
    assert.isUndefined(makeProxies(none, none).shown)
    assert.isUndefined(makeProxies(none, { ...none, no_proxy: ["a"] }).shown)
    assert.deepStrictEqual(
      makeProxies({ ...none, http_url: "http://a:b@p:1" }, { ...none, no_proxy: ["x", "y"] }).shown,
      {
        http: "http://p:1",
        https: undefined,
        noProxyEntries: 2,
        source: "both"
      }
    )
    assert.strictEqual(makeProxies(at("p"), none).shown?.source, "config")
    assert.strictEqual(makeProxies(none, at("p")).shown?.source, "environment")
  })

  it("are not used for hosts that the list in use exempts", () => {
    const { outbound } = makeProxies({ ...at("p"), no_proxy: ["example.org"] }, { ...none, no_proxy: ["example.net"] })
    assert.isUndefined(outbound("https", "a.example.org"))
    assert.isDefined(outbound("https", "a.example.net"))
  })
})

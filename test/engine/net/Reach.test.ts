import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { createServer as createSecureServer } from "node:https"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import * as TlsFiles from "../../../src/engine/http/TlsFiles.ts"
import type { IpAddress } from "../../../src/engine/net/Address.ts"
import { AlpnPeer } from "../../../src/engine/net/AlpnPeer.ts"
import { HttpGet } from "../../../src/engine/net/HttpGet.ts"
import { JsonGet } from "../../../src/engine/net/JsonGet.ts"
import type { ProxySource } from "../../../src/engine/net/Proxy.ts"
import { makeProxies, parseProxy } from "../../../src/engine/net/Proxy.ts"
import { throughProxies } from "../../../src/engine/net/Reach.ts"
import { Resolver } from "../../../src/engine/net/Resolver.ts"
import { Web } from "../../../src/engine/net/Web.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { startForwardProxy } from "../../support/ForwardProxy.ts"
import { listening } from "../../support/Listening.ts"

/* Tests requests through a real forward proxy (docs/operate/service.md, "Through a forward proxy"). */

const none: ProxySource = { http_url: "", https_url: "", no_proxy: [] }

const proxyWith = (options?: Parameters<typeof startForwardProxy>[0]) =>
  Effect.acquireRelease(Effect.promise(() => startForwardProxy(options)), ({ stop }) => Effect.promise(stop))

const inventory = listening(
  createServer(({ headers, url }, response) => response.end(JSON.stringify({ url, headers })))
)

/** An HTTPS server with a certificate for `inside.example`, and its address. */
const secured = Effect.gen(function*() {
  const directory = freshDirectory()
  const [cert_path, key_path] = [join(directory, "c"), join(directory, "k")]
  yield* Effect.provide(
    TlsFiles.load({ listener: "acme", section: "server.tls", cert_path, key_path, host: "inside.example" }),
    Entropy.layer
  )
  const [cert, key] = [readFileSync(cert_path), readFileSync(key_path)]
  const port = yield* listening(createSecureServer({ cert, key }, (_, response) => response.end("{\"is\":\"secure\"}")))
  return { port, root: cert.toString() }
})

const get = (source: ProxySource, url: string, roots: ReadonlyArray<string> = []) =>
  Effect.flatMap(
    JsonGet,
    (client) => client.get({ url: new URL(url), headers: { a: "b" }, roots, anyCertificate: false, maxBytes: 10_000 })
  ).pipe(
    Effect.provide(
      Layer.provide(
        Layer.provide(JsonGet.layer, Web.layer("1", makeProxies(source, none).outbound)),
        Resolver.layerStatic({ localhost: ["127.0.0.1"] })
      )
    )
  )

describe("a request through a proxy", () => {
  it.live("sends the whole URL for http", () =>
    Effect.gen(function*() {
      const [proxy, port] = [yield* proxyWith(), yield* inventory]
      const url = `http://inside.example:${port}/api/?q=1`
      const { json, status } = yield* get({ ...none, http_url: proxy.url.replace("//", "//me:pass@") }, url)
      assert.strictEqual(status, 200)
      const said = json as { readonly url: string; readonly headers: Record<string, string> }
      assert.strictEqual(said.url, "/api/?q=1")
      assert.deepInclude(said.headers, { a: "b", host: `inside.example:${port}` })
      assert.deepStrictEqual(proxy.seen, [{ method: "GET", target: url, authorization: `Basic ${btoa("me:pass")}` }])
    }))

  it.live("uses a tunnel for https, in which the proxy cannot read the TLS connection to the target", () =>
    Effect.gen(function*() {
      const [proxy, { port, root }] = [yield* proxyWith(), yield* secured]
      const source = { ...none, https_url: proxy.url.replace("//", "//me:pass@") }
      assert.deepStrictEqual((yield* get(source, `https://inside.example:${port}/`, [root])).json, { is: "secure" })
      assert.deepStrictEqual(proxy.seen, [
        { method: "CONNECT", target: `inside.example:${port}`, authorization: `Basic ${btoa("me:pass")}` }
      ])
      const untrusted = yield* Effect.flip(get(source, `https://inside.example:${port}/`))
      assert.match(untrusted.detail, /self-signed/)
    }))

  it.live("never goes directly if the proxy fails", () =>
    Effect.gen(function*() {
      const port = yield* inventory
      for (const scheme of ["http", "https"]) {
        const gone = yield* proxyWith()
        yield* Effect.promise(gone.stop)
        const unreachable = yield* Effect.flip(
          get({ ...none, http_url: gone.url, https_url: gone.url }, `${scheme}://inside.example:${port}/`)
        )
        assert.match(unreachable.detail, /^the proxy: .*ECONNREFUSED/)
      }
      const refusing = yield* proxyWith({ refuse: 407 })
      const source = { ...none, http_url: refusing.url, https_url: refusing.url.replace("//", "//me:pass@") }
      for (const scheme of ["http", "https"]) {
        const refused = yield* Effect.flip(get(source, `${scheme}://inside.example:${port}/`))
        assert.strictEqual(refused.detail, `the proxy: answers 407${scheme === "https" ? " No" : ""}`)
      }
      const talkative = yield* proxyWith({ early: "more" })
      const early = yield* Effect.flip(get({ ...none, https_url: talkative.url }, `https://inside.example:${port}/`))
      assert.strictEqual(early.detail, "the proxy: answers with more than its answer")
    }))

  it.live("goes directly to exempt targets and to loopback", () =>
    Effect.gen(function*() {
      const [proxy, port] = [yield* proxyWith(), yield* inventory]
      const source = { ...none, http_url: proxy.url }
      assert.strictEqual((yield* get(source, `http://127.0.0.1:${port}/`)).status, 200)
      assert.strictEqual((yield* get(source, `http://localhost:${port}/`)).status, 200)
      const unknown = yield* Effect.flip(get({ ...source, no_proxy: ["example"] }, `http://inside.example:${port}/`))
      assert.strictEqual(unknown.detail, "its name has no address")
      assert.deepStrictEqual(proxy.seen, [])
    }))
})

describe("a validation through a proxy", () => {
  // The client would reach a loopback address without the proxy, so the tests ask for a documentation address. Whatever
  // address is requested, the test proxy connects to 127.0.0.1 at the requested port.
  const address = "192.0.2.7" as IpAddress
  const fetched = (source: ProxySource, port: number, secure: boolean) =>
    Effect.gen(function*() {
      const dialer = yield* Effect.provide(
        throughProxies(makeProxies(source, none).configured),
        Resolver.layerStatic({})
      )
      const request = {
        address,
        port,
        secure,
        host: `inside.example:${port}`,
        path: "/x",
        maxBytes: 1000,
        connectMillis: 5000
      }
      return yield* Effect.provide(Effect.flatMap(HttpGet, (client) => client.get(request)), HttpGet.layer("1", dialer))
    })

  it.live("asks for a tunnel to the checked address, even for plain http", () =>
    Effect.gen(function*() {
      const [proxy, port, { port: securePort }] = [yield* proxyWith(), yield* inventory, yield* secured]
      const source = { http_url: proxy.url, https_url: proxy.url.replace("//", "//me:pass@"), no_proxy: [] }
      const plain = yield* fetched(source, port, false)
      assert.deepInclude(JSON.parse(plain.body.toString()) as object, { url: "/x" })
      assert.strictEqual((yield* fetched(source, securePort, true)).body.toString(), "{\"is\":\"secure\"}")
      assert.deepStrictEqual(proxy.seen, [
        { method: "CONNECT", target: `192.0.2.7:${port}`, authorization: undefined },
        { method: "CONNECT", target: `192.0.2.7:${securePort}`, authorization: `Basic ${btoa("me:pass")}` }
      ])
    }))

  it.live("asks for a tunnel for tls-alpn-01 too", () =>
    Effect.gen(function*() {
      const [proxy, { port }] = [yield* proxyWith(), yield* secured]
      const dialer = yield* Effect.provide(
        throughProxies(makeProxies({ ...none, https_url: proxy.url }, none).configured),
        Resolver.layerStatic({})
      )
      const request = { address, port, name: "inside.example", protocol: "acme-tls/1", connectMillis: undefined }
      yield* Effect.exit(
        Effect.provide(Effect.flatMap(AlpnPeer, ({ meet }) => meet(request)), AlpnPeer.layer(dialer))
      )
      assert.deepStrictEqual(proxy.seen.map(({ target }) => target), [`192.0.2.7:${port}`])
    }))

  it.live("fails like a connection that cannot be made if the proxy refuses", () =>
    Effect.gen(function*() {
      const proxy = yield* proxyWith({ refuse: 403 })
      const failure = yield* Effect.flip(fetched({ ...none, http_url: proxy.url }, 80, false))
      assert.deepInclude(failure, { _tag: "ConnectFailed", detail: "the proxy: answers 403 No" })
    }))

  it.live("goes directly if the name or the address is exempt", () =>
    Effect.gen(function*() {
      const proxy = yield* proxyWith()
      const own = { address: "127.0.0.1" as IpAddress, port: yield* inventory, connectMillis: 5000 }
      for (const proxied of ["127.0.0.1", "inside.example"]) {
        const proxyOf = (_: string, host: string) => host === proxied ? parseProxy(proxy.url) : undefined
        const dialer = yield* Effect.provide(throughProxies(proxyOf), Resolver.layerStatic({}))
        yield* Effect.scoped(dialer(own, "http", "inside.example"))
      }
      assert.deepStrictEqual(proxy.seen, [])
    }))
})

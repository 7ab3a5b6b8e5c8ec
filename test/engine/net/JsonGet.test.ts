import { it } from "@effect/vitest"
import { Deferred, Effect, Layer } from "effect"
import { readFileSync } from "node:fs"
import type { RequestListener } from "node:http"
import { createServer } from "node:http"
import { createServer as createSecureServer } from "node:https"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import * as TlsFiles from "../../../src/engine/http/TlsFiles.ts"
import type { JsonGetRequest } from "../../../src/engine/net/JsonGet.ts"
import { JsonGet } from "../../../src/engine/net/JsonGet.ts"
import { Resolver } from "../../../src/engine/net/Resolver.ts"
import { Web } from "../../../src/engine/net/Web.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { listening } from "../../support/Listening.ts"

const plain = (listener: RequestListener) => listening(createServer(listener))

const get = (url: string, more: Partial<JsonGetRequest> = {}) =>
  Effect.flatMap(
    JsonGet,
    (client) =>
      client.get({ url: new URL(url), headers: {}, roots: [], anyCertificate: false, maxBytes: 1000, ...more })
  ).pipe(
    Effect.provide(
      Layer.provide(
        Layer.provide(JsonGet.layer, Web.layer("1")),
        Resolver.layerStatic({ "ipam.example": ["127.0.0.1"] })
      )
    )
  )

const detailOf = (...parameters: Parameters<typeof get>) =>
  Effect.map(Effect.flip(get(...parameters)), ({ detail }) => detail)

describe("a request for JSON", () => {
  it.live("is sent to the address of a name with the given headers, and returns the parsed answer", () =>
    Effect.gen(function*() {
      const port = yield* plain(({ headers, url }, response) => response.end(JSON.stringify({ headers, url })))
      const { json, status } = yield* get(`http://ipam.example:${port}/api/x/?a=b`, {
        headers: { authorization: "Token secret" }
      })
      assert.strictEqual(status, 200)
      const { headers, url } = json as { readonly headers: Record<string, string>; readonly url: string }
      assert.strictEqual(url, "/api/x/?a=b")
      assert.deepInclude(headers, {
        authorization: "Token secret",
        host: `ipam.example:${port}`,
        accept: "application/json",
        "accept-encoding": "identity",
        "user-agent": "acme-svc/1"
      })
    }))

  it.live("gives the beginning of a body that is not JSON", () =>
    Effect.gen(function*() {
      const port = yield* plain(({ url }, response) => {
        response.writeHead(url === "/" ? 302 : 200, { location: "/elsewhere" }).end(`a\n\u001b[31m${"b".repeat(500)}`)
      })
      const excerpt = `a [31m${"b".repeat(500)}`
      assert.deepStrictEqual(yield* get(`http://127.0.0.1:${port}/`, { maxBytes: 5000 }), {
        status: 302,
        json: undefined,
        excerpt
      })
      const refusing = yield* plain((_, response) => response.writeHead(404).end("{\"code\":404}"))
      assert.deepInclude(yield* get(`http://127.0.0.1:${refusing}/`), { status: 404, json: { code: 404 } })
      const unread = yield* Effect.flip(get(`http://127.0.0.1:${port}/x`))
      assert.deepInclude({ ...unread }, { detail: "answers with something that is not JSON", excerpt })
    }))

  it.live("accepts no answer that is longer than its limit", () =>
    Effect.gen(function*() {
      const port = yield* plain(({ url }, response) => response.end(JSON.stringify("x".repeat(Number(url?.slice(1))))))
      assert.strictEqual((yield* get(`http://127.0.0.1:${port}/998`)).status, 200)
      assert.include(yield* detailOf(`http://127.0.0.1:${port}/999`), "more than 1000 bytes")
    }))

  it.live("quotes neither the answer nor a header nor the URL in its failure", () =>
    Effect.gen(function*() {
      const port = yield* plain(({ url }, response) => {
        if (url === "/cut") {
          response.writeHead(200, { "content-length": "50" }).write("{")
          return void response.socket?.destroy()
        }
        response.end(url === "/utf8" ? Buffer.from([0x22, 0xff, 0x22]) : "SWORDFISH")
      })
      const secret = { headers: { token: "SWORDFISH" } }
      const details = [
        yield* detailOf(`http://127.0.0.1:${port}/SWORDFISH`, secret),
        yield* detailOf(`http://127.0.0.1:${port}/utf8`, secret),
        yield* detailOf(`http://127.0.0.1:${port}/cut`, secret),
        yield* detailOf("http://127.0.0.1:1/SWORDFISH", secret),
        yield* detailOf("http://unknown.example/SWORDFISH", secret),
        yield* detailOf(`http://127.0.0.1:${port}/`, { headers: { token: "SWORD\nFISH" } })
      ]
      for (const detail of details) {
        assert.notMatch(detail, /SWORD|FISH/)
        assert.notInclude(detail, "127.0.0.1:1/")
      }
    }))

  it.live("trusts the given roots in addition to the public ones, and checks the name", () =>
    Effect.gen(function*() {
      const directory = freshDirectory()
      const files = { cert_path: join(directory, "cert.pem"), key_path: join(directory, "key.pem") }
      yield* Effect.provide(
        TlsFiles.load({ listener: "acme", section: "server.tls", ...files, host: "ipam.example" }),
        Entropy.layer
      )
      const [cert, key] = [readFileSync(files.cert_path, "utf8"), readFileSync(files.key_path, "utf8")]
      const port = yield* listening(createSecureServer({ cert, key }, (_, response) => response.end("[]")))
      const url = `https://ipam.example:${port}/`
      assert.isString(yield* detailOf(url))
      assert.deepStrictEqual((yield* get(url, { roots: [cert] })).json, [])
      assert.deepStrictEqual((yield* get(url, { anyCertificate: true })).json, [])
      // The certificate does not have this address as a name.
      assert.isString(yield* detailOf(`https://127.0.0.1:${port}/`, { roots: [cert] }))
    }))

  it.live("ends when its caller is interrupted", () =>
    Effect.gen(function*() {
      const [asked, closed] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const port = yield* plain((request) => {
        Deferred.doneUnsafe(asked, Effect.void)
        request.socket.once("close", () => Deferred.doneUnsafe(closed, Effect.void))
      })
      yield* Effect.raceFirst(Deferred.await(asked), Effect.asVoid(get(`http://127.0.0.1:${port}/`)))
      yield* Deferred.await(closed)
    }))
})

import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { createServer } from "node:http"
import { assert, describe } from "vitest"
import { Resolver } from "../../../src/engine/net/Resolver.ts"
import { Web } from "../../../src/engine/net/Web.ts"
import { listening } from "../../support/Listening.ts"
import { freePort } from "../../support/Ports.ts"
import { fine, receiver } from "../../support/Receiver.ts"
import { selfSigned } from "../../support/Shown.ts"

/*
 * Tests requests to services that the operator has named. The failure of a request says whether the request may have
 * been sent.
 */

const failureOf = (url: string) =>
  Effect.flatMap(
    Web,
    (web) => Effect.flip(web.send({ method: "POST", url: new URL(url), headers: {}, body: "{}", maxBytes: 1000 }))
  ).pipe(
    Effect.provide(Layer.provide(Web.layer("1"), Resolver.layerStatic({})))
  )

describe("a request that fails", () => {
  it.live("is known to be unsent if no server was reached, or if TLS could not be set up", () =>
    Effect.gen(function*() {
      const port = yield* Effect.promise(freePort)
      assert.isTrue((yield* failureOf(`http://127.0.0.1:${port}/`)).unsent)
      assert.isTrue((yield* failureOf("http://nobody.example/")).unsent)
      // This server only speaks plain HTTP.
      const raw = yield* listening(createServer((_, response) => response.end()))
      assert.isTrue((yield* failureOf(`https://127.0.0.1:${raw}/`)).unsent)
    }))

  it.live("may have arrived if the answer is cut off or never comes", () =>
    Effect.gen(function*() {
      const port = yield* listening(createServer(({ url }, response) => {
        if (url === "/cut") response.writeHead(201, { "content-length": "50", location: "/1" }).write("{")
        setImmediate(() => response.destroy())
      }))
      for (const path of ["cut", "gone"]) {
        const { head, unsent } = yield* failureOf(`http://127.0.0.1:${port}/${path}`)
        assert.isFalse(unsent, path)
        assert.deepStrictEqual(
          [head?.status, head?.headers.location],
          path === "cut" ? [201, "/1"] : [undefined, undefined]
        )
      }
    }))
})

describe("a connection without a request", () => {
  const reaching = (request: Parameters<(typeof Web)["Service"]["reach"]>[0]) =>
    Effect.result(Effect.flatMap(Web, (web) => web.reach(request))).pipe(
      Effect.map((result) => result._tag === "Success" ? "reached" : result.failure.detail),
      Effect.provide(Layer.provide(Web.layer("1"), Resolver.layerStatic({ "localhost": ["127.0.0.1"] })))
    )

  it.live("shows what a request over TLS would encounter, and sends no request", () =>
    Effect.gen(function*() {
      const pair = yield* selfSigned("localhost")
      const { asked, port } = yield* receiver(fine, pair)
      const url = new URL(`https://localhost:${port}/hook`)
      // The message of Node.js itself ends with advice about options of Node.js.
      const untrusted = "self-signed certificate; "
      assert.strictEqual(
        yield* reaching({ url }),
        `${untrusted}NODE_EXTRA_CA_CERTS may name a file with its CA`
      )
      const rootsKey = "ipam.netbox.ca_cert_path"
      assert.strictEqual(yield* reaching({ url, rootsKey }), `${untrusted}${rootsKey} may name a file with its CA`)
      const { cert } = yield* selfSigned("localhost")
      assert.strictEqual(
        yield* reaching({ url, roots: [cert], rootsKey }),
        `${untrusted}${rootsKey} does not have its CA`
      )
      assert.strictEqual(yield* reaching({ url, roots: [pair.cert] }), "reached")
      assert.strictEqual(yield* reaching({ url, anyCertificate: true }), "reached")
      assert.deepStrictEqual(asked, [])
    }))

  it.live("shows whether there is no server at the port or the server does not speak TLS", () =>
    Effect.gen(function*() {
      const { asked, port } = yield* receiver(fine)
      assert.strictEqual(yield* reaching({ url: new URL(`http://localhost:${port}/`) }), "reached")
      assert.strictEqual(
        yield* reaching({ url: new URL(`https://localhost:${port}/`) }),
        "the TLS handshake failed: wrong version number"
      )
      const free = yield* Effect.promise(freePort)
      assert.match(yield* reaching({ url: new URL(`http://localhost:${free}/`) }), /ECONNREFUSED/)
      assert.deepStrictEqual(asked, [])
    }))
})

import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { createServer } from "node:http"
import { assert, describe } from "vitest"
import { Resolver } from "../../../src/kernel/net/Resolver.ts"
import { Web } from "../../../src/kernel/net/Web.ts"
import { listening } from "../../support/Listening.ts"
import { freePort } from "../../support/Ports.ts"

/* Requests to services the operator has named: what is known of one that failed. */

const failureOf = (url: string) =>
  Effect.flatMap(
    Web,
    (web) => Effect.flip(web.send({ method: "POST", url: new URL(url), headers: {}, body: "{}", maxBytes: 1000 }))
  ).pipe(
    Effect.provide(Layer.provide(Web.layer("1"), Resolver.layerStatic({})))
  )

describe("a request that fails", () => {
  it.live("is known to be unsent where nobody was reached, or nobody could be told it over TLS", () =>
    Effect.gen(function*() {
      const port = yield* Effect.promise(freePort)
      assert.isTrue((yield* failureOf(`http://127.0.0.1:${port}/`)).unsent)
      assert.isTrue((yield* failureOf("http://nobody.example/")).unsent)
      // Over plain HTTP only.
      const raw = yield* listening(createServer((_, response) => response.end()))
      assert.isTrue((yield* failureOf(`https://127.0.0.1:${raw}/`)).unsent)
    }))

  it.live("may have arrived where the answer is cut off or never comes", () =>
    Effect.gen(function*() {
      const port = yield* listening(createServer(({ url }, response) => {
        if (url === "/cut") response.writeHead(201, { "content-length": "50" }).write("{")
        setImmediate(() => response.destroy())
      }))
      for (const path of ["cut", "gone"]) {
        assert.isFalse((yield* failureOf(`http://127.0.0.1:${port}/${path}`)).unsent, path)
      }
    }))
})

import { Effect, Layer } from "effect"
import { assert, describe } from "vitest"
import type { Request } from "../../../src/engine/http/Message.ts"
import { unmatched } from "../../../src/engine/http/Message.ts"
import { ReverseNames } from "../../../src/engine/net/ReverseNames.ts"
import { Passwords } from "../../../src/services/operators/Passwords.ts"
import { make } from "../../../src/surfaces/operator/ApiApp.ts"
import { checkServicesOf } from "../../../src/surfaces/operator/gate/Entrance.ts"
import { sqlite } from "../../support/Databases.ts"
import { configOf, world } from "../../support/Graph.ts"
import { startsAt } from "../../support/Operators.ts"
import { useStore } from "../../support/UseTests.ts"

/* Tests how the metrics count the requests of the API. */

const config = configOf()

const request = (path: string): Request => ({
  id: "1",
  method: "GET",
  target: path,
  path,
  headers: {},
  clientIp: "192.0.2.1",
  userAgent: undefined,
  body: Effect.succeed(Buffer.alloc(0))
})

describe("the API of operators", () => {
  const { test } = useStore(sqlite, {
    startsAt,
    layer: ({ name, records }) =>
      Layer.provideMerge(Passwords.layer({ iterations: 2 }), world({ seed: name, records })),
    first: () => Effect.void
  })

  test("counts all unknown routes under one name in the metrics", () =>
    Effect.gen(function*() {
      const checkServices = checkServicesOf(config.admin, { policy: undefined, names: yield* ReverseNames })
      const { route } = make(config.admin, checkServices, {
        resolved: { config, sources: new Map() },
        version: "0.0.0-test",
        mostRows: config.admin.page_size_max
      })
      const id = "01890a5d-ac96-774b-bcce-b302099a8057"
      const patterns = [`/api/orders/${id}`, "/api/none", "/"].map((path) => route(request(path)).pattern)
      assert.deepStrictEqual(patterns, ["/api/orders/{id}", unmatched, unmatched])
    }))
})

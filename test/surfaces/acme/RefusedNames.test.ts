import { Effect } from "effect"
import { assert, describe } from "vitest"
import type { Answer } from "../../../src/engine/http/Message.ts"
import type { OrderBody } from "../../support/AcmeSession.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { configOf, count, sql } from "../../support/Graph.ts"
import { at, bodyOf, newClient, surfaceOf, urlOf } from "../../support/Handle.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* The details of problems about names. Most clients show only the detail of a problem. */

const labels = (octets: number, end: string): string => {
  const text = `${"x".repeat(62)}.`.repeat(5)
  return `${text.slice(0, octets - end.length - 1)}.${end}`
}

const hyphen = "A label of the name begins or ends with a hyphen."
const longest = labels(253, "bad-")

describe.each(databases)("a refusal of names, on $name", (backend) => {
  const { test } = useWorld(backend, {
    first: () => Effect.flatMap(surfaceOf(configOf()), newClient)
  })

  type Send<R> = (to: string, payload: object) => Effect.Effect<Answer, never, R>

  const ordering = <R>(send: Send<R>, names: ReadonlyArray<string>, type = "dns") =>
    Effect.map(
      send(urlOf(at("/newOrder")), { identifiers: names.map((value) => ({ type, value })) }),
      (answer) => bodyOf(answer)
    )

  const cases: ReadonlyArray<readonly [title: string, names: ReadonlyArray<string>, detail: string]> = [
    ["one of one", ["bad-.example"], `bad-.example: ${hyphen}`],
    ["one of three", ["a.example", "bad-.example", "b.example"], `bad-.example: ${hyphen}`],
    [
      "two of three",
      ["-a.example", "a.example", "-b.example"],
      `-a.example: ${hyphen.slice(0, -1)}; and 1 more identifier was refused.`
    ],
    [
      "three of three",
      ["-a.example", "1.2.3.4", "a b.example"],
      `-a.example: ${hyphen.slice(0, -1)}; and 2 more identifiers were refused.`
    ],
    [
      "100 of 100",
      Array.from({ length: 100 }, (_, index) => `-${index}.example`),
      `-0.example: ${hyphen.slice(0, -1)}; and 99 more identifiers were refused, 90 of which are not listed here.`
    ],
    ["of 253 octets", [longest], `${longest}: ${hyphen}`],
    ["longer than any name", [`${longest}x`], `${longest}…: The name is longer than 253 octets.`],
    ["empty", [""], "\"\": The name has an empty label."],
    ["with a space", ["a b.example"], "a\\u{20}b.example: The name holds a space, which no DNS name has."],
    [
      "that would act on a terminal",
      ["\u001b[2J.example"],
      "\\u{1B}[2J.example: The name holds the character U+001B, which no DNS name has."
    ],
    [
      "that is a wildcard without dns-01",
      ["*.a.example"],
      "*.a.example: A wildcard needs dns-01, which this profile does not offer."
    ]
  ]
  for (const [title, names, detail] of cases) {
    test(`has a detail with the first name, its reason and the number of others: ${title}`, ({ send }) =>
      Effect.gen(function*() {
        const problem = yield* ordering(send, names)
        assert.strictEqual(problem.detail, detail)
        for (const part of problem.subproblems ?? []) {
          assert.isTrue(part.detail?.startsWith((part.identifier?.value ?? "").replace(" ", "\\u{20}")), part.detail)
        }
        assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 0)
      }))
  }

  test("has the name in its detail if the name is of another type", ({ send }) =>
    Effect.gen(function*() {
      const { detail } = yield* ordering(send, ["192.0.2.1"], "ip")
      assert.strictEqual(detail, "192.0.2.1: Certificates are issued for identifiers of type dns only.")
    }))

  test("has the first name and the number of others in its detail if it is about a CSR", ({ send }) =>
    Effect.gen(function*() {
      const names = ["a.example", "b.example", "c.example"]
      const placed = yield* send(urlOf(at("/newOrder")), {
        identifiers: names.map((value) => ({ type: "dns", value }))
      })
      const { finalize } = JSON.parse(String(placed.body)) as OrderBody
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'ready'")
      const said = (csr: Parameters<typeof makeCsr>[0]) =>
        Effect.map(
          send(finalize, { csr: makeCsr(csr).csr.toString("base64url") }),
          (answer) => bodyOf(answer).detail
        )
      assert.strictEqual(
        yield* said({ names: ["a.example", "b.example"] }),
        "The CSR lacks c.example, which the order has."
      )
      assert.strictEqual(
        yield* said({ names: ["a.example"] }),
        "The CSR lacks b.example and 1 more, which the order has."
      )
      assert.strictEqual(
        yield* said({ names: [...names, "x.example", "y.example", "z.example"] }),
        "The CSR asks for x.example and 2 more, which the order lacks."
      )
      assert.strictEqual(
        yield* said({ names, commonNames: ["x.example"] }),
        "The CSR has the common name x.example, which the order lacks."
      )
    }))
})

import { Effect } from "effect"
import { assert, describe } from "vitest"
import { databases } from "../../support/Databases.ts"
import { column, configOf, sql } from "../../support/Graph.ts"
import { at, bodyOf, headerOf, newClient, surfaceOf, urlOf } from "../../support/Handle.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* The list of an account's orders (RFC 8555 section 7.1.2.1). */

const surface = surfaceOf(configOf())

describe.each(databases)("the orders of an account on $name", (backend) => {
  const { test } = useWorld(backend)

  const someone = Effect.gen(function*() {
    const { kid, send } = yield* Effect.flatMap(surface, (app) => newClient(app))
    const order = (name: string) =>
      Effect.map(
        send(at("/newOrder"), { identifiers: [{ type: "dns", value: name }] }),
        (answer) => headerOf(answer, "location")
      )
    const list = (query = "") => send(`${kid.slice(urlOf("").length)}/orders${query}`)
    return { kid, send, order, list }
  })
  const listed = (answer: { readonly body?: unknown }) =>
    (JSON.parse(String(answer.body)) as { readonly orders: ReadonlyArray<string> }).orders

  test("are listed, newest first, at the URL that the account object contains", () =>
    Effect.gen(function*() {
      const { kid, list, order, send } = yield* someone
      const account = yield* send(kid.slice(urlOf("").length))
      assert.strictEqual((JSON.parse(String(account.body)) as { readonly orders: string }).orders, `${kid}/orders`)
      assert.deepStrictEqual(listed(yield* list()), [])
      const made = yield* Effect.forEach(["a.example", "b.example", "c.example"], order)
      assert.deepStrictEqual(listed(yield* list()), made.toReversed())
    }))

  test("come in pages of 100, and each page links to the next one", () =>
    Effect.gen(function*() {
      const { kid, list, order } = yield* someone
      const made = yield* Effect.forEach(Array.from({ length: 203 }, (_, index) => `n${index}.example`), order)
      const seen: Array<string> = []
      const sizes: Array<number> = []
      let query: string | undefined = ""
      while (query !== undefined) {
        const answer: Effect.Success<ReturnType<typeof list>> = yield* list(query)
        const page = listed(answer)
        sizes.push(page.length)
        seen.push(...page)
        const links = [answer.headers["link"] ?? []].flat()
        const next = links.flatMap((link) => /^<(.*)>;rel="next"$/.exec(link)?.[1] ?? [])
        assert.isAtMost(next.length, 1)
        if (next[0] !== undefined) assert.isTrue(next[0].startsWith(`${kid}/orders?cursor=`))
        query = next[0]?.slice(`${kid}/orders`.length)
      }
      assert.deepStrictEqual(sizes, [100, 100, 3])
      assert.deepStrictEqual(seen, made.toReversed())
    }))

  test("do not include failed orders, expired unfinished orders or orders of another account", () =>
    Effect.gen(function*() {
      const [{ list, order }, other] = [yield* someone, yield* someone]
      yield* other.order("other.example")
      const names = ["pending", "ready", "processing", "valid", "invalid", "lapsed", "late"]
      const made = yield* Effect.forEach(names, (name) => order(`${name}.example`))
      const idOf = (at: number) => made[at]?.split("/").at(-1) ?? ""
      const literal = (id: string) => backend.dialect === "sqlite" ? `x'${id.replaceAll("-", "")}'` : `'${id}'`
      for (const [at, status] of [[1, "ready"], [2, "processing"], [3, "valid"], [4, "invalid"]] as const) {
        yield* sql(`UPDATE orders SET status = '${status}' WHERE id = ${literal(idOf(at))}`)
      }
      yield* sql(`UPDATE orders SET created_at = -604800, expires_at = 0 WHERE id = ${literal(idOf(5))}`)
      yield* sql(
        `UPDATE orders SET created_at = -604800, expires_at = 0, status = 'valid' WHERE id = ${literal(idOf(6))}`
      )
      assert.strictEqual((yield* column("SELECT id FROM orders")).length, names.length + 1)
      assert.deepStrictEqual(listed(yield* list()), [6, 3, 2, 1, 0].map((at) => made[at] ?? ""))
    }))

  test("come in short pages if many orders have failed, because a page reads at most 500 failed ones", () =>
    Effect.gen(function*() {
      const { list, order } = yield* someone
      const oldest = yield* order("a.example")
      const isSqlite = backend.dialect === "sqlite"
      const rows = Array.from({ length: 600 }, (_, index) => {
        const digits = `fff00000-0000-7000-8000-${index.toString(16).padStart(12, "0")}`
        const id = isSqlite ? `x'${digits.replaceAll("-", "")}'` : `'${digits}'`
        return `(${id}, 'default', (SELECT id FROM accounts), 'invalid', '[]', 0)`
      })
      yield* sql(
        `INSERT INTO orders (id, profile, account_id, status, identifiers, created_at) VALUES ${rows.join(", ")}`
      )
      const first = yield* list()
      assert.deepStrictEqual(listed(first), [])
      const next = [first.headers["link"] ?? []].flat().join().match(/cursor=([^>]*)>;rel="next"/)?.[1]
      const second = yield* list(`?cursor=${next}`)
      assert.deepStrictEqual(listed(second), [oldest])
      assert.notMatch(String(second.headers["link"]), /rel="next"/)
    }))

  test("are not shown to another account, whether or not the requested account exists", () =>
    Effect.gen(function*() {
      const [one, other] = [yield* someone, yield* someone]
      for (const path of [other.kid.slice(urlOf("").length), at("/acct/01890a5d-ac96-774b-bcce-b302099a8057")]) {
        const answer = yield* one.send(`${path}/orders`)
        assert.deepStrictEqual(
          [answer.status, bodyOf(answer).type],
          [401, "urn:ietf:params:acme:error:unauthorized"]
        )
      }
    }))

  test("are paged only by a cursor of the right form", () =>
    Effect.gen(function*() {
      const [one, other] = [yield* someone, yield* someone]
      const first = yield* one.order("a.example")
      const theirs = yield* other.order("b.example")
      yield* one.order("c.example")
      for (const cursor of ["", "1", "A1890A5D-AC96-774B-BCCE-B302099A8057", "%00", "../.."]) {
        const answer = yield* one.list(`?cursor=${cursor}`)
        assert.deepStrictEqual(
          [answer.status, bodyOf(answer).type],
          [400, "urn:ietf:params:acme:error:malformed"],
          cursor
        )
      }
      assert.deepStrictEqual(listed(yield* one.list(`?cursor=${theirs.split("/").at(-1)}`)), [first])
      assert.strictEqual(listed(yield* one.list("?limit=1")).length, 2, "other words of a query are not looked at")
    }))
})

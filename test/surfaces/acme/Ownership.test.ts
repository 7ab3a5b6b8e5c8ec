import { Effect } from "effect"
import { X509Certificate } from "node:crypto"
import { assert, describe } from "vitest"
import type { Answer } from "../../../src/engine/http/Message.ts"
import * as LocalCa from "../../../src/services/signing/LocalCa.ts"
import type { AuthorizationBody, OrderBody } from "../../support/AcmeSession.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases, freshDirectory } from "../../support/Databases.ts"
import { configOf, sql } from "../../support/Graph.ts"
import {
  acmeKey,
  bodyOf,
  byAccount,
  freshNonce,
  headerOf,
  posted,
  signed,
  surfaceOf,
  urlOf
} from "../../support/Handle.ts"
import { issueRequest, madeAt, settingsIn } from "../../support/LocalCa.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* docs/contribute/attacks.md, "Ownership": the requests of B are signed correctly, but ask for what belongs to A. */

const surface = surfaceOf(configOf())
const absent = "01890a5d-ac96-774b-bcce-b302099a8057"
const idOf = (url: string): string => url.slice(url.lastIndexOf("/") + 1)
const csr = makeCsr({ names: ["a.example"] }).csr.toString("base64url")

describe.each(databases)("what belongs to another account on $name", (backend) => {
  const { records, test } = useWorld(backend, { startsAt: madeAt })

  /** Makes a new account at a profile. */
  const someone = (profile = "default") =>
    Effect.gen(function*() {
      const app = yield* surface
      const key = acmeKey()
      const target = `/profile/${profile}/newAccount`
      const header = { jwk: key.jwk, url: urlOf(target), nonce: yield* freshNonce }
      const kid = headerOf(yield* app.handle(posted(target, signed(key, header, {}))), "location")
      const post = (path: string, payload?: object | string) =>
        Effect.flatMap(byAccount(key, kid, `/profile/${profile}${path}`, payload), app.handle)
      /** An order with everything that belongs to it. */
      const order = Effect.gen(function*() {
        const placed = yield* post("/newOrder", { identifiers: [{ type: "dns", value: "a.example" }] })
        const { authorizations: [authorization = ""] } = JSON.parse(String(placed.body)) as OrderBody
        const shown = yield* post(`/authz/${idOf(authorization)}`)
        const { challenges: [challenge] } = JSON.parse(String(shown.body)) as AuthorizationBody
        return {
          order: idOf(headerOf(placed, "location")),
          authorization: idOf(authorization),
          challenge: idOf(challenge?.url ?? "")
        }
      })
      /** A valid order with a leaf of a separate CA. */
      const certified = Effect.gen(function*() {
        const { order: id } = yield* order
        const { issue } = yield* LocalCa.make(settingsIn(freshDirectory()))
        const { chain, notAfter, serial } = yield* issue(issueRequest(["a.example"]))
        const literal = backend.dialect === "sqlite" ? `x'${id.replaceAll("-", "")}'` : `'${id}'`
        yield* sql(
          `UPDATE orders SET status = 'valid', certificate = '${chain}', cert_serial = '${serial}',
             cert_not_after = ${notAfter} WHERE id = ${literal}`
        )
        return { id, serial, leaf: new X509Certificate(chain) }
      })
      return { key, kid, post, order, certified }
    })

  const stored = Effect.map(
    Effect.forEach(
      ["orders", "authorizations", "challenges", "jobs", "audit_log"],
      (table) => sql(`SELECT * FROM ${table} ORDER BY 1`)
    ),
    (tables) => JSON.stringify(tables)
  )

  const said = ({ body, headers, status }: Answer) => [status, String(body), Object.keys(headers).sort()]

  const problem = (answer: Answer, status: number, type: string) =>
    assert.deepStrictEqual(
      [answer.status, bodyOf(answer).type],
      [status, `urn:ietf:params:acme:error:${type}`],
      String(answer.body)
    )

  test("is not found if it is an order, an authorization, a challenge or a certificate, at the same profile or another", () =>
    Effect.gen(function*() {
      const a = yield* someone()
      const pending = yield* a.order
      const ready = yield* a.order
      const { id: valid } = yield* a.certified
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'ready' WHERE status = 'pending'")
      const wanted: ReadonlyArray<readonly [path: (id: string) => string, id: string, payload?: object]> = [
        [(id) => `/order/${id}`, pending.order],
        [(id) => `/order/${id}`, valid],
        [(id) => `/order/${id}/finalize`, ready.order, { csr }],
        [(id) => `/order/${id}/finalize`, ready.order, { csr: "junk" }],
        [(id) => `/authz/${id}`, pending.authorization],
        [(id) => `/authz/${id}`, ready.authorization, { status: "deactivated" }],
        [(id) => `/chall/${id}`, pending.challenge],
        [(id) => `/chall/${id}`, pending.challenge, {}],
        [(id) => `/certificate/${id}`, valid]
      ]
      const before = yield* stored
      for (const profile of ["default", "other"]) {
        const b = yield* someone(profile)
        for (const [path, id, payload] of wanted) {
          const answer = yield* b.post(path(id), payload)
          problem(answer, 404, "malformed")
          assert.deepStrictEqual(said(answer), said(yield* b.post(path(absent), payload)), path(id))
        }
      }
      assert.strictEqual(yield* stored, before)
    }))

  test("is unauthorized if it is an account or its list of orders, whether or not the account exists", () =>
    Effect.gen(function*() {
      const a = yield* someone()
      for (const b of [yield* someone(), yield* someone("other")]) {
        for (const rest of ["", "/orders"]) {
          const answers = [
            yield* b.post(`/acct/${idOf(a.kid)}${rest}`),
            yield* b.post(`/acct/${absent}${rest}`),
            yield* b.post(`/acct/nonsense${rest}`)
          ]
          for (const answer of answers) problem(answer, 401, "unauthorized")
          assert.strictEqual(new Set(answers.map((answer) => JSON.stringify(said(answer)))).size, 1)
        }
      }
      problem(yield* (yield* someone()).post(`/acct/${idOf(a.kid)}`, { status: "deactivated" }), 401, "unauthorized")
      assert.strictEqual((yield* a.post(`/acct/${idOf(a.kid)}`)).status, 200)
    }))

  test("cannot be changed by a keyChange that names the other account", () =>
    Effect.gen(function*() {
      const [a, b, next] = [yield* someone(), yield* someone(), acmeKey()]
      const header = { jwk: next.jwk, url: urlOf("/profile/default/keyChange") }
      for (const oldKey of [a.key, b.key]) {
        const inner = signed(next, header, { account: a.kid, oldKey: oldKey.jwk })
        problem(yield* b.post("/keyChange", inner), 400, "malformed")
      }
      for (const one of [a, b]) assert.strictEqual((yield* one.post(`/acct/${idOf(one.kid)}`)).status, 200)
    }))

  test("cannot be revoked if it is a certificate", () =>
    Effect.gen(function*() {
      const { leaf } = yield* (yield* someone()).certified
      const payload = { certificate: leaf.raw.toString("base64url") }
      problem(yield* (yield* someone()).post("/revokeCert", payload), 401, "unauthorized")
      problem(yield* (yield* someone("other")).post("/revokeCert", payload), 404, "malformed")
    }))

  test("is not found by an order id of version 4, in upper case, of 10 KB, with U+0000 or with %2F", () =>
    Effect.gen(function*() {
      const a = yield* someone()
      const { order: id } = yield* a.order
      assert.strictEqual((yield* a.post(`/order/${id}`)).status, 200)
      const others = [
        `${id.slice(0, 14)}4${id.slice(15)}`,
        id.toUpperCase(),
        id.repeat(300),
        `${id}\0`,
        `\0${id.slice(1)}`,
        `${id}%2F`,
        `%2F${id}`,
        `${id}%00`
      ]
      const nobody = said(yield* a.post(`/order/${absent}`))
      for (const other of others) assert.deepStrictEqual(said(yield* a.post(`/order/${other}`)), nobody, other)
      assert.isFalse(records.some(({ event }) => event === "db_statement_failed"))
    }))
})

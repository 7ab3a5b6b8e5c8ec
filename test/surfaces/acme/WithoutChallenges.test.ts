import { Effect } from "effect"
import { assert, describe } from "vitest"
import { noScope } from "../../../src/domain/CredentialScope.ts"
import * as eab from "../../../src/operations/operator/Eab.ts"
import type { AuthorizationBody, OrderBody } from "../../support/AcmeSession.ts"
import { bindingOf } from "../../support/Binding.ts"
import { databases } from "../../support/Databases.ts"
import { configOf, count } from "../../support/Graph.ts"
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
import { useWorld } from "../../support/UseWorld.ts"

/*
 * What clients see of names that a credential proves. No challenge is stored, but every offered one is shown as valid
 * (docs/contribute/decisions/clients.md, "A name that needs no challenge shows valid ones").
 */

const surface = surfaceOf(configOf(`
[eab]
enabled = true
[challenge]
enabled = ["http-01", "dns-01"]
`))

interface ChallengeBody {
  readonly type: string
  readonly url: string
  readonly token: string
  readonly status: string
}

describe.each(databases)("a name that needs no challenge on $name", (backend) => {
  const { test } = useWorld(backend)

  /** Returns an account of a credential that proves the names below corp.example. */
  const someone = Effect.gen(function*() {
    const scope = { ...noScope, names: ["**.corp.example"], wildcards: true, prevalidated: true }
    const operator = { kind: "cli", id: "tester" } as const
    const { credential, secret } = yield* eab.create(operator, { label: "team", profile: undefined, scope })
    const [app, key] = [yield* surface, acmeKey()]
    const url = urlOf("/profile/default/newAccount")
    const externalAccountBinding = bindingOf({ kid: credential.kid, secret }, key.jwk, url)
    const header = { jwk: key.jwk, url, nonce: yield* freshNonce }
    const made = yield* app.handle(
      posted("/profile/default/newAccount", signed(key, header, { externalAccountBinding }))
    )
    const kid = headerOf(made, "location")
    const post = (to: string, payload?: object) =>
      Effect.flatMap(
        byAccount(key, kid, to.startsWith("/") ? to : to.slice(urlOf("").length), payload),
        (request) => app.handle(request)
      )
    const authorizations = (...names: ReadonlyArray<string>) =>
      Effect.gen(function*() {
        const identifiers = names.map((value) => ({ type: "dns", value }))
        const placed = yield* post("/profile/default/newOrder", { identifiers })
        const order = JSON.parse(String(placed.body)) as OrderBody
        assert.strictEqual(order.status, "ready")
        return yield* Effect.forEach(order.authorizations, (url) =>
          Effect.map(post(url), ({ body, headers }) => {
            assert.notProperty(headers, "retry-after")
            return { url, shown: JSON.parse(String(body)) as AuthorizationBody }
          }))
      })
    return { post, authorizations }
  })

  const challengesOf = ({ challenges }: AuthorizationBody) => challenges as ReadonlyArray<ChallengeBody>

  test("shows each challenge that the profile offers for it, as valid, and none is stored", () =>
    Effect.gen(function*() {
      const { authorizations } = yield* someone
      const [plain, wildcard] = yield* authorizations("a.corp.example", "*.b.corp.example")
      if (plain === undefined || wildcard === undefined) return assert.fail("no authorizations")
      assert.deepStrictEqual(
        [plain, wildcard].map((
          { shown }
        ) => [shown.status, challengesOf(shown).map(({ status, type }) => [type, status])]),
        [
          ["valid", [["http-01", "valid"], ["dns-01", "valid"]]],
          ["valid", [["dns-01", "valid"]]]
        ]
      )
      for (const one of challengesOf(plain.shown)) {
        assert.match(one.token, /^[\w-]{22,}$/)
        assert.property(one, "validated")
      }
      assert.strictEqual(yield* count("SELECT count(*) FROM challenges"), 0)
    }))

  test("answers a request for such a challenge with the challenge, and changes nothing", () =>
    Effect.gen(function*() {
      const { authorizations, post } = yield* someone
      const [found] = yield* authorizations("a.corp.example")
      const [challenge] = found === undefined ? [] : challengesOf(found.shown)
      for (const payload of [{}, undefined]) {
        const answer = yield* post(challenge?.url ?? "", payload)
        assert.strictEqual(answer.status, 200)
        assert.deepStrictEqual<unknown>(bodyOf(answer), challenge)
        assert.include(JSON.stringify(answer.headers["link"]), `<${found?.url}>;rel=\\"up\\"`)
      }
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE kind = 'challenge_validate'"), 0)
    }))

  test("has no challenge for another account, nor after it was deactivated", () =>
    Effect.gen(function*() {
      const { authorizations, post } = yield* someone
      const [found] = yield* authorizations("a.corp.example")
      const [{ url } = { url: "" }] = found === undefined ? [] : challengesOf(found.shown)
      const other = yield* someone
      for (const payload of [{}, undefined]) assert.strictEqual((yield* other.post(url, payload)).status, 404)
      const ended = yield* post(found?.url ?? "", { status: "deactivated" })
      assert.deepInclude(JSON.parse(String(ended.body)), { status: "deactivated", challenges: [] })
      for (const payload of [{}, undefined]) assert.strictEqual((yield* post(url, payload)).status, 404)
    }))
})

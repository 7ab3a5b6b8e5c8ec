import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { BodyTooLarge, BodyTooSlow, Shed } from "../../../src/engine/http/HttpRefused.ts"
import type { Answer, Request } from "../../../src/engine/http/Message.ts"
import { ReverseNames } from "../../../src/engine/net/ReverseNames.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import { SqlError } from "../../../src/engine/sql/SqlError.ts"
import { databases } from "../../support/Databases.ts"
import { configOf, count, eventsOf, sql } from "../../support/Graph.ts"
import {
  acmeKey,
  at,
  bodyOf,
  byAccount,
  defaultBase,
  freshNonce,
  headerOf,
  posted,
  register,
  requestOf,
  signed,
  surfaceOf,
  urlOf
} from "../../support/Handle.ts"
import { useWorld } from "../../support/UseWorld.ts"

/*
 * The parts around the handlers of the ACME surface: routing, media types, nonces, links, admission and the handler of
 * defects.
 */

const config = configOf("[meta]\nterms_of_service = \"https://terms.example/\"")
const surface = surfaceOf(config)
const key = acmeKey()
const absent = "01890a5d-ac96-774b-bcce-b302099a8057"
const index = `<${defaultBase}/directory>;rel="index"`
const jose = { "content-type": "application/jose+json" }

describe.each(databases)("the ACME surface on $name", (backend) => {
  const { database, records, test } = useWorld(backend)

  const handle = (request: Request) => Effect.flatMap(surface, (app) => app.handle(request))
  const get = (target: string, method = "GET") => handle(requestOf(method, target))

  const problem = (answer: Answer, status: number, type: string | undefined) => {
    assert.strictEqual(answer.status, status, String(answer.body))
    assert.strictEqual(headerOf(answer, "content-type"), "application/problem+json")
    const said = bodyOf(answer)
    assert.strictEqual(said.type, type === undefined ? undefined : `urn:ietf:params:acme:error:${type}`)
    assert.strictEqual(said.status, status)
  }

  /** Checks what every answer to a POST must have, whatever its content. */
  const dressed = (answer: Answer) =>
    Effect.gen(function*() {
      const nonce = headerOf(answer, "replay-nonce")
      assert.match(nonce, /^[\w-]{43}$/)
      assert.strictEqual(yield* count(`SELECT count(*) FROM nonces WHERE value = '${nonce}'`), 1, "it works")
      assert.strictEqual(headerOf(answer, "cache-control"), "no-store")
      assert.include([answer.headers["link"]].flat(), index)
      return nonce
    })

  test("answers newNonce with 200 for HEAD and 204 for GET, each with a different nonce", () =>
    Effect.gen(function*() {
      const answers = yield* Effect.forEach(["HEAD", "GET", "HEAD", "GET"], (method) => get(at("/newNonce"), method))
      assert.deepStrictEqual(answers.map(({ status }) => status), [200, 204, 200, 204])
      const nonces = yield* Effect.forEach(answers, dressed)
      assert.strictEqual(new Set(nonces).size, 4)
      for (const answer of answers) assert.notProperty(answer, "body")
    }))

  test("serves a directory that contains the URLs and settings of the profile, without a nonce or a Link header", () =>
    Effect.gen(function*() {
      for (const method of ["GET", "HEAD"]) {
        const answer = yield* get(at("/directory"), method)
        assert.strictEqual(answer.status, 200)
        assert.deepStrictEqual(Object.keys(answer.headers).sort(), ["content-type", "etag"])
        const urls = ["newNonce", "newAccount", "newOrder", "revokeCert", "keyChange", "renewalInfo"].map((
          name
        ) => [name, `${defaultBase}/${name}`])
        assert.deepStrictEqual(JSON.parse(String(answer.body)), {
          ...Object.fromEntries(urls),
          meta: { termsOfService: "https://terms.example/" }
        })
      }
    }))

  test("does not send the directory again to a client that has the current one", () =>
    Effect.gen(function*() {
      const tag = headerOf(yield* get(at("/directory")), "etag")
      assert.match(tag, /^"[\w-]{22}"$/)
      const ask = (held: string, method = "GET") =>
        handle(requestOf(method, at("/directory"), { headers: { "if-none-match": held } }))
      for (const held of [tag, `W/${tag}`, `"other", ${tag}`, "*"]) {
        for (const method of ["GET", "HEAD"]) {
          const answer = yield* ask(held, method)
          assert.deepStrictEqual([answer.status, answer.body], [304, undefined], held)
          assert.deepStrictEqual(answer.headers, { etag: tag })
        }
      }
      for (const held of ["\"other\"", tag.slice(1, -1), `${tag}x`, ""]) {
        assert.strictEqual((yield* ask(held)).status, 200, held)
      }
      const known = yield* handle(
        requestOf("GET", at("/absent"), { headers: { "if-none-match": "*" } })
      )
      problem(known, 404, "malformed")
      const kid = yield* register(yield* surface, key)
      const read = yield* byAccount(key, kid, at("/directory"), "")
      const signedRead = yield* handle({ ...read, headers: { ...read.headers, "if-none-match": tag } })
      assert.strictEqual(signedRead.status, 200, "a signed request is answered in full")
    }))

  test("answers a method that the route does not accept with 405 and an Allow header", () =>
    Effect.gen(function*() {
      const takes: ReadonlyArray<readonly [target: string, allow: string, methods: ReadonlyArray<string>]> = [
        [at("/directory"), "GET, HEAD, POST", ["PUT", "DELETE", "OPTIONS", "post"]],
        [at("/newNonce"), "GET, HEAD, POST", ["PATCH"]],
        [at("/newOrder"), "POST", ["GET", "HEAD", "PUT"]],
        [at(`/acct/${absent}`), "POST", ["GET"]],
        [at(`/order/${absent}/finalize`), "POST", ["GET"]],
        ["/health", "GET, HEAD", ["POST", "PUT"]],
        ["/", "GET, HEAD", ["POST"]]
      ]
      for (const [target, allow, methods] of takes) {
        for (const method of methods) {
          const answer = yield* get(target, method)
          problem(answer, 405, "malformed")
          assert.strictEqual(headerOf(answer, "allow"), allow, `${method} ${target}`)
        }
      }
    }))

  test("ignores headers that claim another method", () =>
    Effect.gen(function*() {
      const headers = { "x-http-method-override": "POST", "x-http-method": "POST", "x-method-override": "POST" }
      problem(yield* handle(requestOf("GET", at("/newOrder"), { headers })), 405, "malformed")
    }))

  test("compares paths exactly, without decoding or normalising them", () =>
    Effect.gen(function*() {
      const app = yield* surface
      const kid = yield* register(app, key)
      const account = kid.slice(urlOf("").length)
      const paths = [
        "",
        "//",
        "/profile",
        "/profile/",
        "/profile/default",
        "/profile//directory",
        "/profile/absent/directory",
        "/profile/Default/directory",
        "/profile/default//directory",
        "//profile/default/directory",
        "/profile/default/directory/",
        "/profile/default/directory;x",
        "/profile/default/directory%20",
        "/profile/default/./directory",
        "/profile/other/../default/directory",
        "/profile/%64efault/directory",
        "/profile/default/%64irectory",
        "/profile/default%2Fdirectory",
        "/profile/default/Directory",
        "/profile/default/constructor",
        "/profile/__proto__/directory",
        "/profile/default/newAuthz",
        "/profile/default/acct",
        "/profile/default/order//finalize/x",
        `${account}/`,
        `${account}/orders/more`,
        "*",
        "/health/",
        "/Health",
        "/%68ealth",
        "/.well-known/acme-challenge/",
        "/.well-known/acme-challenge/token",
        "/.well-known/acme-challenge/token/deeper"
      ]
      for (const target of paths) {
        problem(yield* get(target), 404, "malformed")
        problem(yield* handle(posted(target, "{}")), 404, "malformed")
      }
      assert.strictEqual((yield* get(`${at("/directory")}?a=b`)).status, 200, "a query is no part of the path")
      // An id in another spelling does not belong to any record.
      const payload = { identifiers: [{ type: "dns", value: "a.example" }] }
      const order = headerOf(yield* app.handle(yield* byAccount(key, kid, at("/newOrder"), payload)), "location")
      const id = order.slice(order.lastIndexOf("/") + 1)
      const read = (path: string) => Effect.flatMap(byAccount(key, kid, at(path)), app.handle)
      assert.strictEqual((yield* read(`/order/${id}`)).status, 200)
      for (const other of [id.toUpperCase(), `%30${id.slice(1)}`, `{${id}}`, id.replaceAll("-", ""), "", "1", absent]) {
        for (const kind of ["order", "authz", "chall", "certificate"]) {
          problem(yield* read(`/${kind}/${other}`), 404, "malformed")
        }
      }
    }))

  test("answers /health and / without the database and without a slot", () =>
    Effect.gen(function*() {
      yield* sql("ALTER TABLE nonces RENAME TO away")
      const none = yield* surfaceOf(config, 0)
      const answers = yield* Effect.forEach(["/health", "/"], (path) => none.handle(requestOf("GET", path))).pipe(
        Effect.ensuring(sql("ALTER TABLE away RENAME TO nonces"))
      )
      assert.deepStrictEqual(answers, [
        { status: 200, headers: { "content-type": "application/json" }, body: `{"healthy":true}` },
        { status: 302, headers: { location: "/health" } }
      ])
    }))

  test("answers a POST of another media type than application/jose+json with 415 and does not read its body", () =>
    Effect.gen(function*() {
      const unread = Effect.die("the body was read")
      const types = ["", "application/json", "text/plain", "application/jose+jsonx", "xapplication/jose+json", "a, b"]
      const refusals: ReadonlyArray<Request["headers"]> = [
        {},
        ...types.map((type) => ({ "content-type": type })),
        { "content-type": ["application/jose+json", "application/jose+json"] },
        { ...jose, "content-encoding": "gzip" },
        { ...jose, "content-encoding": "identity, gzip" },
        { ...jose, "transfer-encoding": "gzip, chunked" }
      ]
      for (const headers of refusals) {
        const answer = yield* handle(requestOf("POST", at("/newOrder"), { headers, body: unread }))
        problem(answer, 415, undefined)
        yield* dressed(answer)
      }
      for (
        const type of ["Application/JOSE+JSON", "application/jose+json;charset=utf-8", "application/jose+json ; a"]
      ) {
        for (const encoding of ["identity", "IDENTITY", "identity, Identity", ""]) {
          const headers = { "content-type": type, "content-encoding": encoding, "transfer-encoding": "Chunked" }
          problem(yield* handle(posted(at("/newOrder"), "{}", headers)), 400, "malformed")
        }
      }
    }))

  test("adds a new nonce and a link to the directory to every answer to a POST", () =>
    Effect.gen(function*() {
      const app = yield* surface
      const kid = yield* register(app, key)
      const known = (target: string, payload?: object) => Effect.flatMap(byAccount(key, kid, target, payload), handle)
      const withBody = (body: Request["body"]) => handle(requestOf("POST", at("/newOrder"), { headers: jose, body }))
      const unagreed = Effect.flatMap(freshNonce, (nonce) => {
        const stranger = acmeKey()
        const target = at("/newAccount")
        return handle(posted(target, signed(stranger, { jwk: stranger.jwk, url: urlOf(target), nonce }, {})))
      })
      const answers = yield* Effect.all({
        200: known(kid.slice(urlOf("").length)),
        201: known(at("/newOrder"), { identifiers: [{ type: "dns", value: "a.example" }] }),
        204: known(at("/newNonce")),
        400: handle(posted(at("/newOrder"), "{}")),
        401: known(at(`/acct/${absent}`)),
        403: unagreed,
        404: known(at(`/order/${absent}`)),
        408: withBody(new BodyTooSlow()),
        413: withBody(new BodyTooLarge()),
        500: withBody(Effect.die("planted")),
        503: withBody(new Shed()),
        late: app.late(requestOf("POST", at("/newOrder")))
      })
      const fresh: Array<string> = []
      for (const [status, answer] of Object.entries(answers)) {
        assert.strictEqual(answer.status, status === "late" ? 503 : Number(status), String(answer.body))
        fresh.push(yield* dressed(answer))
      }
      assert.strictEqual(new Set(fresh).size, fresh.length)
      assert.deepStrictEqual(answers[403].headers["link"], [index, "<https://terms.example/>;rel=\"terms-of-service\""])
      problem(answers[500], 500, undefined)
      problem(answers[503], 503, undefined)
      problem(answers.late, 503, "serverInternal")
      assert.deepStrictEqual([answers[503], answers.late].map((answer) => headerOf(answer, "retry-after")), ["5", "5"])
      const late = yield* app.late(requestOf("GET", at("/directory")))
      problem(late, 503, "serverInternal")
      assert.notProperty(late.headers, "replay-nonce")
    }))

  test("sends errors without a nonce if no nonce is available", () =>
    Effect.gen(function*() {
      yield* sql("ALTER TABLE nonces RENAME TO away")
      const answers = yield* Effect.all([
        handle(posted(at("/newOrder"), "{}")),
        get(at("/newNonce"), "HEAD"),
        get(at("/newNonce")),
        get(at("/newNonce"), "PUT"),
        get(at("/directory"), "PUT"),
        get(at("/directory"))
      ]).pipe(Effect.ensuring(sql("ALTER TABLE away RENAME TO nonces")))
      assert.deepStrictEqual(answers.map(({ status }) => status), [400, 500, 500, 405, 405, 200])
      for (const { headers, status } of answers) {
        assert.notProperty(headers, "replay-nonce")
        assert.deepStrictEqual(headers["link"], status === 200 ? undefined : [index])
      }
    }))

  test("answers a storage failure and a defect with 500 and without details", () =>
    Effect.gen(function*() {
      const app = yield* surface
      const kid = yield* register(app, key)
      const target = kid.slice(urlOf("").length)
      yield* sql("ALTER TABLE accounts RENAME TO away")
      const failed = yield* app.handle(yield* byAccount(key, kid, target)).pipe(
        Effect.ensuring(sql("ALTER TABLE away RENAME TO accounts"))
      )
      problem(failed, 500, "serverInternal")
      assert.notMatch(String(failed.body), /account_by_id|SELECT|relation|table/)
      assert.notInclude(eventsOf(records), "request_handler_panicked")
      yield* sql(`UPDATE accounts SET pubkey = ${backend.dialect === "sqlite" ? "X'00'" : "'\\x00'"}`)
      const panicked = yield* app.handle(yield* byAccount(key, kid, target))
      problem(panicked, 500, undefined)
      yield* dressed(panicked)
      assert.strictEqual(eventsOf(records).filter((event) => event === "request_handler_panicked").length, 1)
    }))

  test("waits once for the disk with each answer of a profile, and answers as after the deadline if the disk fails", () =>
    Effect.gen(function*() {
      const driver = yield* Database
      let waits = 0
      const over = (upTo: Effect.Effect<void, SqlError>) =>
        Effect.provideService(Database, {
          ...driver,
          commits: {
            committed: () => {},
            last: () => 1,
            upTo: () => Effect.andThen(Effect.sync(() => waits++), upTo),
            now: Effect.void,
            failed: Effect.never
          }
        })
      const answer = yield* over(Effect.void)(get(at("/directory")))
      assert.deepStrictEqual([answer.status, waits], [200, 1])
      const failed = new SqlError({ cause: new Error("EIO"), message: "the sync failed" })
      const late = yield* over(Effect.fail(failed))(get(at("/directory")))
      assert.deepStrictEqual(
        bodyOf(late),
        bodyOf(yield* Effect.flatMap(surface, (app) => app.late(requestOf("GET", "/"))))
      )
    }))

  describe("admission", () => {
    const directory = requestOf("GET", at("/directory"))

    /** Makes requests of accounts wait for the database until the scope ends. */
    const stalled = Effect.gen(function*() {
      const begun = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      const other = backend.dialect === "sqlite" ? database.driver() : yield* database.another
      const holding = other.exclusive((connection) =>
        Effect.gen(function*() {
          if (other.dialect === "postgres") {
            yield* other.begin(connection)
            yield* connection.executeRaw("LOCK TABLE nonces IN ACCESS EXCLUSIVE MODE", [])
          }
          yield* Deferred.succeed(begun, undefined)
          yield* Deferred.await(ended)
          if (other.dialect === "postgres") yield* connection.executeRaw("ROLLBACK", [])
        })
      )
      const fiber = yield* Effect.forkChild(holding)
      yield* Effect.addFinalizer(() =>
        Effect.andThen(Deferred.succeed(ended, undefined), Effect.orDie(Fiber.join(fiber)))
      )
      yield* Deferred.await(begun)
    })

    /** Returns whether the only slot is free. A request that finds no slot waits and is then answered 503. */
    const isFree = (app: Effect.Success<typeof surface>) =>
      Effect.gen(function*() {
        const asking = yield* Effect.forkChild(app.handle(directory))
        yield* Effect.yieldNow
        yield* TestClock.adjust(config.server.admission_wait_ms)
        return (yield* Fiber.join(asking)).status === 200
      })

    test("releases the slot after success, failure, defect and interruption", () =>
      Effect.gen(function*() {
        const app = yield* surfaceOf(config, 1)
        const kid = yield* register(app, key)
        const target = kid.slice(urlOf("").length)
        assert.strictEqual((yield* app.handle(yield* byAccount(key, kid, target))).status, 200)
        assert.isTrue(yield* isFree(app), "after success")
        assert.strictEqual((yield* app.handle(posted(target, "{}"))).status, 400)
        assert.isTrue(yield* isFree(app), "after failure")

        const cut = yield* byAccount(key, kid, target)
        yield* Effect.scoped(Effect.gen(function*() {
          yield* stalled
          for (let round = 0; round < 20; round++) {
            const request = yield* Effect.forkChild(app.handle(cut))
            yield* Effect.yieldNow
            assert.isFalse(yield* isFree(app), "while it works")
            yield* Fiber.interrupt(request)
            assert.isTrue(yield* isFree(app), "after interruption")
          }
        }))

        const panicking = yield* byAccount(key, kid, target)
        yield* sql(`UPDATE accounts SET pubkey = ${backend.dialect === "sqlite" ? "X'00'" : "'\\x00'"}`)
        assert.strictEqual((yield* app.handle(panicking)).status, 500)
        assert.isTrue(yield* isFree(app), "after a defect")
      }))

    test("takes no slot for the look-up of a client's reverse name", () =>
      Effect.gen(function*() {
        const app = yield* surfaceOf(config, 1)
        const kid = yield* register(app, key)
        const target = kid.slice(urlOf("").length)
        const [looking, found] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const slow = yield* Effect.forkChild(Effect.provideService(
          app.handle(yield* byAccount(key, kid, target, { contact: ["mailto:a@b.example"] })),
          ReverseNames,
          {
            look: () => Effect.andThen(Deferred.succeed(looking, undefined), Deferred.await(found)),
            of: () => Effect.succeed("web.example")
          }
        ))
        yield* Deferred.await(looking)
        assert.isTrue(yield* isFree(app))
        yield* Deferred.succeed(found, undefined)
        assert.strictEqual((yield* Fiber.join(slow)).status, 200)
      }))

    test("refuses a POST that finds no slot in time with 503 and a new nonce", () =>
      Effect.gen(function*() {
        const app = yield* surfaceOf(config, 1)
        const kid = yield* register(app, key)
        const body = yield* Deferred.make<Buffer>()
        const slow = yield* Effect.forkChild(
          app.handle(requestOf("POST", at("/newOrder"), { headers: jose, body: Deferred.await(body) }))
        )
        yield* Effect.yieldNow
        assert.isTrue(yield* isFree(app), "a slow sender holds no slot")
        const first = yield* byAccount(key, kid, kid.slice(urlOf("").length))
        yield* freshNonce // This request makes the service prepare further nonces before the database stalls.
        const holding = yield* Effect.scoped(Effect.gen(function*() {
          yield* stalled
          const holding = yield* Effect.forkChild(app.handle(first))
          yield* Effect.yieldNow
          yield* Deferred.succeed(body, Buffer.from("{}"))
          yield* TestClock.adjust(config.server.admission_wait_ms)
          const shed = yield* Fiber.join(slow)
          problem(shed, 503, undefined)
          assert.strictEqual(headerOf(shed, "retry-after"), "5")
          assert.property(shed.headers, "replay-nonce")
          assert.deepStrictEqual(eventsOf(records).slice(-1), ["request_shed"])
          return holding
        }))
        assert.strictEqual((yield* Fiber.join(holding)).status, 200, "who had the slot is answered")
        assert.isTrue(yield* isFree(app))
      }))

    test("lets a waiting request proceed when a slot is released", () =>
      Effect.gen(function*() {
        const app = yield* surfaceOf(config, 1)
        const kid = yield* register(app, key)
        const first = yield* byAccount(key, kid, kid.slice(urlOf("").length))
        const waiting = yield* Effect.scoped(Effect.gen(function*() {
          yield* stalled
          yield* Effect.forkChild(app.handle(first))
          yield* Effect.yieldNow
          const waiting = yield* Effect.forEach(
            [1, 2, 3],
            () => Effect.forkChild(app.handle(directory))
          )
          yield* Effect.yieldNow
          return waiting
        }))
        const answers = yield* Effect.forEach(waiting, Fiber.join)
        assert.deepStrictEqual(answers.map(({ status }) => status), [200, 200, 200])
        assert.notInclude(eventsOf(records), "request_shed")
      }))
  })
})

import { Cause, Effect, Exit, Result, Schema, Stream } from "effect"
import { assert, describe } from "vitest"
import type { OperatorError } from "../../../src/domain/OperatorError.ts"
import { operatorProblemOf } from "../../../src/domain/OperatorProblem.ts"
import { BodyTooLarge, BodyTooSlow } from "../../../src/engine/http/HttpRefused.ts"
import type { Answer, Request } from "../../../src/engine/http/Message.ts"
import type { Database } from "../../../src/engine/sql/Database.ts"
import { StorageFailed } from "../../../src/engine/sql/Database.ts"
import type { Exported } from "../../../src/operations/operator/Exports.ts"
import type { AnyAct } from "../../../src/surfaces/operator/Act.ts"
import { act, FileOutput } from "../../../src/surfaces/operator/Act.ts"
import { answerOf } from "../../../src/surfaces/operator/ActAnswer.ts"
import { Acting } from "../../../src/surfaces/operator/Acting.ts"
import { routeOf } from "../../../src/surfaces/operator/ActRoute.ts"
import { name, optional, paging } from "../../../src/surfaces/operator/Field.ts"
import type { Access, Sender } from "../../../src/surfaces/operator/gate/OperatorChecks.ts"
import { apiOf, signedIn, useApi } from "../../support/Api.ts"
import { sqlite } from "../../support/Databases.ts"
import { fieldsOf } from "../../support/Graph.ts"
import { requestOf, sender } from "../../support/Spellings.ts"

/*
 * A request that has passed its checks: what is read from it, which roles may make it, and which parts of the act's
 * answer are sent.
 */

const plain = { access: "viewer", does: "Do a thing", errors: [], input: {} } as const
const given = <In>(input: In) => Effect.succeed({ input })
const output = Schema.Struct({ input: Schema.Unknown })

const list = act({
  ...plain,
  id: "list",
  input: { name: optional(name("A name.")), ...paging },
  output,
  run: given,
  http: { route: "GET /api/things" }
})
const make = act({
  ...plain,
  id: "make",
  input: { name: name("A name.") },
  output,
  run: given,
  http: { route: "POST /api/things", status: 201 }
})
const change = act({
  ...plain,
  id: "change",
  input: { name: optional(name("A name.")) },
  output,
  run: given,
  http: { route: "PATCH /api/things" }
})
const end = act({ ...plain, id: "end", output, run: given, http: { route: "POST /api/things/end", status: 204 } })

const client = { ip: "192.0.2.1", request_id: "1", user_agent: undefined }

/** Returns the answer to a request for an act. */
const asked = (
  one: AnyAct<never>,
  request: Request,
  { by }: { readonly by: Sender } = { by: sender }
): Effect.Effect<Answer, OperatorError, Database> => {
  const [route] = routeOf(one)
  return route === undefined
    ? assert.fail("there is no route")
    // None of these acts asks for the password, so that the service that compares passwords is not needed.
    : answerOf(request, { route, parameters: {}, sender: by, client, held: undefined }, 9) as Effect.Effect<
      Answer,
      OperatorError,
      Database
    >
}

const bodyOf = ({ body }: Answer) => body === undefined ? undefined : JSON.parse(String(body))

/** Returns the input of an act, or the status and the sentence of a refusal. */
const told = <R>(answer: Effect.Effect<Answer, OperatorError, R>) =>
  Effect.map(
    Effect.result(answer),
    Result.match({
      onFailure: (error) => {
        const { message, status } = operatorProblemOf(error)
        return [status, message]
      },
      onSuccess: (sent) => [sent.status, bodyOf(sent)?.input]
    })
  )

const json = "application/json"
const withBody = (body: string, type: string | undefined, more: Request["headers"] = {}): Request => {
  const headers = { ...more, ...type === undefined ? {} : { "content-type": type } }
  return { ...requestOf("POST", "/", body), headers }
}
const media = "A body needs Content-Type: application/json, and must not be compressed."

describe("a request for an act", () => {
  const { config, records, test } = useApi(sqlite)

  test("passes on the values that its route accepts", () =>
    Effect.gen(function*() {
      const a = "{\"name\":\"a\"}"
      for (
        const [one, request, ...expected] of [
          [make, withBody(a, json), 201, { name: "a" }],
          [make, withBody(a, "Application/JSON ; charset=x"), 201, { name: "a" }],
          [make, withBody(a, json, { "content-encoding": "identity" }), 201, { name: "a" }],
          [change, withBody("", undefined), 200, {}],
          [change, withBody("", json), 200, {}],
          [change, withBody("", "text/plain"), 200, {}],
          [end, withBody("", undefined), 204, undefined],
          [end, withBody("", json), 204, undefined],
          [end, withBody(" { } ", json), 204, undefined],
          [list, requestOf("GET", "/?name=a?b&limit="), 200, { name: "a?b", limit: 50, offset: 0 }]
        ] as const
      ) {
        assert.deepStrictEqual(yield* told(asked(one as AnyAct<never>, request)), [...expected])
      }
    }))

  test("passes on nothing else", () =>
    Effect.gen(function*() {
      const a = "{\"name\":\"a\"}"
      const many = (count: number) => Array.from({ length: count }, (_, at) => `p${at}=`).join("&")
      const failing = (body: Request["body"]): Request => ({ ...withBody("", json), body })
      for (
        const [one, request, ...expected] of [
          [make, withBody(a, undefined), 415, media],
          [make, withBody(a, "text/plain"), 415, media],
          [make, withBody(a, "application/json5"), 415, media],
          [make, withBody(a, "x/application/json"), 415, media],
          [make, withBody(a, json, { "content-encoding": "gzip" }), 415, media],
          [change, withBody("{}", "text/plain"), 415, media],
          [make, withBody("", undefined), 400, "The member name is missing."],
          [make, withBody("{", json), 400, "The body is not JSON."],
          [make, withBody("[]", json), 400, "The body must be an object."],
          [make, failing(Effect.succeed(Buffer.of(0x22, 0xff, 0x22))), 400, "The body is not UTF-8 text."],
          [make, failing(new BodyTooLarge()), 413, "The body is larger than 9 octets."],
          [make, failing(new BodyTooSlow()), 400, "The body did not arrive in time."],
          [make, { ...withBody(a, json), target: "/?a=1" }, 400, "The parameter a is unknown."],
          [end, withBody("{}", undefined), 400, "This route takes no body."],
          [end, withBody("[]", json), 400, "This route takes no body."],
          [end, withBody("0", json), 400, "This route takes no body."],
          [end, withBody(a, json), 400, "This route takes no body."],
          [end, failing(new BodyTooLarge()), 413, "The body is larger than 9 octets."],
          [end, { ...withBody("", json), target: "/?a=1" }, 400, "The parameter a is unknown."],
          [list, requestOf("GET", `/?${many(65)}`), 400, "A query takes 64 parameters at most."]
        ] as const
      ) {
        assert.deepStrictEqual(yield* told(asked(one as AnyAct<never>, request)), [...expected])
      }
      assert.strictEqual((yield* told(asked(list as AnyAct<never>, requestOf("GET", `/?${many(64)}`))))[0], 200)
    }))

  test("is answered without waiting for a body if it is a GET", () =>
    Effect.gen(function*() {
      const never = { ...requestOf("GET", "/"), body: Effect.never }
      assert.deepStrictEqual(yield* told(asked(list as AnyAct<never>, never)), [200, { limit: 50, offset: 0 }])
    }))

  test("is a defect if it comes from a caller whom the checks should have refused", () =>
    Effect.gen(function*() {
      const { tokenHash, userId, username } = sender
      const half = {
        kind: "half",
        step: "verify",
        userId,
        username,
        tokenHash,
        csrfToken: "c",
        createdAt: 0,
        expiresAt: 1
      } as const
      const token = { kind: "token", id: "t", name: "t", role: "admin", userId, username } as const
      const senders: { readonly [name: string]: Sender } = { nobody: undefined, half, token, session: sender }
      const meant: { readonly [A in Access]: ReadonlyArray<string> } = {
        public: ["nobody", "half", "token", "session"],
        half: ["half"],
        own: ["session"],
        viewer: ["token", "session"],
        operator: ["token", "session"],
        admin: ["token", "session"]
      }
      for (const [access, those] of Object.entries(meant)) {
        let done = 0
        const run = () => Effect.sync(() => ({ input: ++done }))
        const one = { ...list, access, run } as unknown as AnyAct<never>
        for (const [kind, by] of Object.entries(senders)) {
          const ended = yield* Effect.exit(asked(one, requestOf("GET", "/"), { by }))
          assert.strictEqual(Exit.isSuccess(ended), those.includes(kind), `${access} ${kind}`)
          const said = Exit.isFailure(ended) ? Cause.pretty(ended.cause) : ""
          if (!those.includes(kind)) assert.include(said, `a request of ${kind} reached an act that is not for it`)
        }
        assert.strictEqual(done, those.length)
      }
    }))

  test("is made in the name of its sender", () =>
    Effect.gen(function*() {
      const run = () => Effect.map(Acting, ({ operator, role }) => ({ input: { ...operator, role } }))
      const [, by] = yield* told(asked({ ...list, run } as unknown as AnyAct<never>, requestOf("GET", "/")))
      assert.deepInclude(by, { kind: "admin", id: "anna", role: "admin" })
    }))

  test("is answered with the declared members only", () =>
    Effect.gen(function*() {
      const secret = { input: 1, hash: "what nobody may read" }
      const all = yield* asked({ ...list, run: () => Effect.succeed(secret) } as AnyAct<never>, requestOf("GET", "/"))
      assert.deepStrictEqual([all.status, bodyOf(all)], [200, { input: 1 }])
      const none = yield* asked({ ...end, run: () => Effect.succeed(secret) } as AnyAct<never>, requestOf("POST", "/"))
      assert.deepStrictEqual(none, { status: 204, headers: {} })
    }))

  test("is answered 500 if the act's answer does not fit", () =>
    Effect.gen(function*() {
      const broken = yield* apiOf({ ...config, nonce: { ...config.nonce, ttl_seconds: 1.5 } })
      const held = yield* signedIn(broken, "vera", "viewer")
      const { json, status } = yield* broken.ask("/api/nonces", held)
      assert.deepStrictEqual([status, json.error], [500, "internal"])
      assert.match(String(fieldsOf(records, "request_handler_panicked")[0]?.["error"]), /ttlSeconds/)
    }))

  test("is answered 500 and logged once if the act fails for an internal reason", () =>
    Effect.gen(function*() {
      const failing = (failure: unknown) => ({ ...list, run: () => Effect.fail(failure) }) as AnyAct<never>
      const stored = new StorageFailed({ statement: "SELECT", detail: "the disk is full", transient: false })
      const statusOf = (failure: unknown) =>
        Effect.map(told(asked(failing(failure), requestOf("GET", "/"))), ([status]) => status)
      assert.strictEqual(yield* statusOf(stored), 500)
      // The statement was already logged when it failed.
      assert.deepStrictEqual(fieldsOf(records, "request_handler_panicked"), [])
      assert.strictEqual(yield* statusOf({ _tag: "Strange", message: "a strange thing" }), 500)
      assert.deepStrictEqual(fieldsOf(records, "request_handler_panicked"), [{ error: "a strange thing" }])
    }))

  test("is logged as an export only after the whole file was sent", () =>
    Effect.gen(function*() {
      const file: Omit<Exported, "text"> = {
        list: "orders",
        format: "csv",
        fileName: "orders.csv",
        mediaType: "text/csv; charset=utf-8"
      }
      const sent = (text: Exported["text"]) =>
        asked(
          { ...list, output: FileOutput, run: () => Effect.succeed({ ...file, text }) } as unknown as AnyAct<never>,
          requestOf("GET", "/")
        )
      const logged = () => fieldsOf(records, "admin_export_completed")
      const { headers, status, stream = Stream.empty, ...more } = yield* sent(Stream.make("a,b\r\n", "é,2\r\n"))
      assert.deepStrictEqual([status, headers, more], [200, {
        "content-disposition": "attachment; filename=\"orders.csv\"",
        "content-type": "text/csv; charset=utf-8"
      }, {}])
      assert.strictEqual(Buffer.concat(yield* Stream.runCollect(Stream.take(stream, 1))).toString(), "a,b\r\n")
      assert.deepStrictEqual(logged(), [])
      assert.strictEqual(Buffer.concat(yield* Stream.runCollect(stream)).toString(), "a,b\r\né,2\r\n")
      assert.strictEqual(logged().length, 1)
      assert.deepInclude(logged()[0], { username: "anna", list: "orders", format: "csv" })
      const lost = new StorageFailed({ statement: "SELECT", detail: "gone", transient: false })
      const cut = yield* sent(Stream.concat(Stream.make("a"), Stream.fail(lost)))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(Stream.runCollect(cut.stream ?? Stream.empty))))
      assert.strictEqual(logged().length, 1)
    }))
})

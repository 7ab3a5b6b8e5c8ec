import { Effect } from "effect"
import { assert, describe } from "vitest"
import {
  AccessDenied,
  Busy,
  MfaPending,
  SessionExpired,
  SessionIdle,
  SessionInvalid
} from "../../../src/domain/OperatorError.ts"
import type { Request } from "../../../src/engine/http/Message.ts"
import type { CheckServices } from "../../../src/surfaces/operator/gate/Entrance.ts"
import { entranceOf } from "../../../src/surfaces/operator/gate/Entrance.ts"
import type { Access, Sender } from "../../../src/surfaces/operator/gate/OperatorChecks.ts"
import { matcherOf } from "../../../src/surfaces/operator/gate/RouteMatcher.ts"
import { sqlite } from "../../support/Databases.ts"
import { fieldsOf } from "../../support/Graph.ts"
import { useStore } from "../../support/UseTests.ts"

/* The questions that the checks of the entrance ask other services, in the order of the checks. */

const viewer: Sender = {
  kind: "session",
  role: "viewer",
  userId: "u",
  username: "vera",
  totpEnabled: false,
  tokenHash: "h",
  csrfToken: "right",
  createdAt: 0,
  expiresAt: 1
}

const request = (method: string, path: string): Request => ({
  id: "1",
  method,
  target: path,
  path,
  headers: { "x-csrf-token": "right" },
  clientIp: "192.0.2.1",
  userAgent: undefined,
  body: Effect.succeed(Buffer.alloc(0))
})

const route = (method: string, pattern: string, access: Access) => ({
  method,
  pattern,
  access,
  isWithoutCsrf: false,
  isStepUp: false
})

const known = matcherOf([
  route("GET", "/open", "public"),
  route("GET", "/things", "viewer"),
  route("POST", "/things", "viewer")
])

describe("the entrance of operators", () => {
  const { records, test } = useStore(sqlite)

  /** Returns the questions that a request causes, one after another, and how the request ends. */
  const told = (method: string, path: string, of: Partial<CheckServices> = {}) => {
    const asked: Array<string> = []
    const asking = <A>(what: string, answer: A) => Effect.sync(() => (asked.push(what), answer))
    const checkServices: CheckServices = {
      admit: () => asking("policy", undefined),
      identify: () => asking("session", viewer),
      named: (client) => asking("name", { ...client, ptr: "client.example" }),
      ...of
    }
    return Effect.map(
      Effect.result(entranceOf("https://admin.example.org", checkServices)(request(method, path), known(path), false)),
      (ended) => [...asked, ended._tag === "Success" ? ended.success.client.ptr ?? "no name" : ended.failure.error._tag]
    )
  }

  test("asks first about the policy, then about the session, and last about the reverse name of the client", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* told("GET", "/things"), ["policy", "session", "no name"])
      assert.deepStrictEqual(yield* told("HEAD", "/things"), ["policy", "session", "no name"])
      assert.deepStrictEqual(yield* told("POST", "/things"), ["policy", "session", "name", "client.example"])
      assert.deepStrictEqual(yield* told("PUT", "/things"), ["policy", "session", "MethodRefused"])
      assert.deepStrictEqual(yield* told("GET", "/open"), ["policy", "no name"])
      assert.deepStrictEqual(yield* told("GET", "/none"), ["policy", "NoSuchRoute"])
    }))

  test("makes no further check after a refusal", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* told("POST", "/things", { admit: () => new AccessDenied({}) }), ["AccessDenied"])
      const idle = { identify: () => new SessionIdle() }
      assert.deepStrictEqual(yield* told("POST", "/things", idle), ["policy", "SessionIdle"])
      const nobody = { identify: () => Effect.succeed(undefined) }
      assert.deepStrictEqual(yield* told("POST", "/things", nobody), ["policy", "SessionInvalid"])
      assert.deepStrictEqual(fieldsOf(records, "admin_request_refused").map(({ reason }) => reason), [
        "session_state",
        "session_state"
      ])
    }))

  test("logs the refusal of a session, but not an error that another service has already logged", () =>
    Effect.gen(function*() {
      const session = [new SessionInvalid(), new SessionExpired(), new SessionIdle(), new MfaPending()]
      for (const error of session) yield* told("GET", "/things", { identify: () => error })
      const reasons = () => fieldsOf(records, "admin_request_refused").map(({ reason }) => reason)
      assert.deepStrictEqual(reasons(), session.map(() => "session_state"))
      yield* told("GET", "/things", { identify: () => new Busy({ retryAfter: 5 }) })
      assert.lengthOf(reasons(), session.length)
    }))
})

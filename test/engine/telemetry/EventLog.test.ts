import { it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import ts from "typescript"
import { assert, describe } from "vitest"
import { events } from "../../../src/domain/words/Event.ts"
import { fields } from "../../../src/domain/words/EventField.ts"
import { emit } from "../../../src/domain/words/Log.ts"
import { withinSpan } from "../../../src/engine/telemetry/EngineLog.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { EventLog } from "../../../src/engine/telemetry/EventLog.ts"
import { accessWeight } from "../../../src/engine/telemetry/Weight.ts"
import { eventsOf } from "../../support/Graph.ts"
import { useTests } from "../../support/UseTests.ts"
import { own, shownByDefault, specified } from "./specified.ts"

const { records, test } = useTests()

describe("a record", () => {
  test("has the level and outcome its event is declared with, and the time of its fiber", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_234)
      yield* emit("server_listening", { address: "a", tls: true, base_url: "b" })
      yield* TestClock.adjust("5 millis")
      yield* emit("tls_disabled", { base_url: "b" })
      yield* emit("server_shutdown_started", { signal: "SIGTERM" })
      yield* emit("db_statement_failed", { statement: "s", error: "e" })
      assert.deepStrictEqual(records.map(({ at, level, outcome }) => ({ at, level, outcome })), [
        { at: 1_234, level: "info", outcome: "success" },
        { at: 1_239, level: "warn", outcome: "advisory" },
        { at: 1_239, level: "info", outcome: "progress" },
        { at: 1_239, level: "error", outcome: "failure" }
      ])
      assert.deepStrictEqual(records[3]?.fields, { statement: "s", error: "e" })
    }))

  test("of a request is weighed by what it reports", () =>
    Effect.gen(function*() {
      for (const [status, isProbe] of [[200, false], [404, false], [499, true], [500, false], [503, true]] as const) {
        yield* emit("request_completed", { status, latency_ms: 1 }, accessWeight(status, isProbe))
      }
      assert.deepStrictEqual(records.map(({ level, outcome }) => `${level} ${outcome}`), [
        "info success",
        "info success",
        "debug success",
        "warn failure",
        "warn failure"
      ])
    }))

  it.effect("is not built when the filter refuses its event or level", () =>
    Effect.gen(function*() {
      const written: Array<string> = []
      const asked: Array<string> = []
      const picky = Layer.succeed(EventLog, {
        enabled: (event, level) => {
          asked.push(`${event} ${level}`)
          return level !== "debug" && event !== "request_shed"
        },
        write: ({ event }) => written.push(event)
      })
      yield* Effect.provide(
        Effect.all([
          emit("request_shed", {}),
          emit("request_completed", { status: 200, latency_ms: 1 }, { level: "debug", outcome: "success" }),
          emit("request_completed", { status: 200, latency_ms: 1 })
        ]),
        picky
      )
      assert.deepStrictEqual(written, ["request_completed"])
      assert.deepStrictEqual(asked, ["request_shed warn", "request_completed debug", "request_completed info"])
    }))

  it.effect("goes nowhere, and harms nothing, without a log", () => emit("request_shed", {}))
})

describe("the facts of a request", () => {
  test("are on every record of its fiber and of those it starts", () =>
    Effect.gen(function*() {
      yield* emit("request_shed", {})
      const served = Effect.gen(function*() {
        yield* emit("request_deadline_exceeded", {})
        yield* Effect.forkChild(emit("request_id_header_invalid", {})).pipe(Effect.flatMap(Fiber.await))
      })
      yield* Effect.forkChild(withinSpan({ request_id: "one" }, 0, served)).pipe(Effect.flatMap(Fiber.await))
      yield* emit("request_shed", {})
      assert.deepStrictEqual(records.map(({ span }) => span["request_id"]), [undefined, "one", "one", undefined])
    }))

  test("are never those of another request served at the same time", () =>
    Effect.gen(function*() {
      const go = yield* Deferred.make<void>()
      const serve = (request_id: string) =>
        withinSpan(
          { request_id },
          0,
          Effect.gen(function*() {
            yield* Effect.yieldNow
            yield* emit("account_deactivated", { account_id: request_id })
            yield* Deferred.await(go)
            yield* emit("account_deactivated", { account_id: request_id })
          })
        )
      const served = yield* Effect.forEach(["a", "b", "c"], (id) => Effect.forkChild(serve(id)))
      yield* Effect.yieldNow
      yield* Deferred.succeed(go, undefined)
      yield* Effect.forEach(served, Fiber.await)
      assert.strictEqual(records.length, 6)
      for (const { fields, span } of records) assert.strictEqual(span["request_id"], fields["account_id"] as string)
    }))

  test("hold in what is raced and forked within, and end where it ends", () =>
    Effect.gen(function*() {
      const told = emit("request_shed", {})
      const raced = Effect.raceFirst(told, Effect.never)
      const forked = Effect.flatMap(Effect.forkChild(told), Fiber.join)
      const within = Effect.andThen(Effect.timeoutOption(raced, 1000), Effect.andThen(forked, told))
      yield* Effect.andThen(withinSpan({ request_id: "one" }, 0, within), told)
      assert.deepStrictEqual(records.map(({ span }) => span.request_id), ["one", "one", "one", undefined])
    }))

  test("are replaced as a whole by the next", () =>
    Effect.gen(function*() {
      const next = withinSpan({ request_id: "two" }, 0, emit("request_shed", {}))
      yield* withinSpan({ request_id: "one", profile: "p" }, 0, Effect.andThen(emit("request_shed", {}), next))
      assert.deepStrictEqual(records.map(({ span }) => span), [{ request_id: "one", profile: "p" }, {
        request_id: "two"
      }])
      assert.deepStrictEqual(eventsOf(records), ["request_shed", "request_shed"])
    }))
})

describe("a span", () => {
  it.effect("tells of its beginning and its end, and how long it was", () =>
    Effect.gen(function*() {
      const records: Array<Record> = []
      yield* Effect.gen(function*() {
        yield* TestClock.setTime(1000)
        yield* withinSpan({ request_id: "one" }, 1000, TestClock.adjust("7 millis"))
      }).pipe(Effect.provideService(EventLog, { enabled: () => true, write: (record) => records.push(record) }))
      assert.deepStrictEqual(
        records.map(({ event, fields, level, span }) => ({ event, fields, level, span })),
        [
          { event: "span_opened", fields: {}, level: "debug", span: { request_id: "one" } },
          { event: "span_closed", fields: { elapsed_ms: 7 }, level: "debug", span: { request_id: "one" } }
        ]
      )
    }))
})

describe("the vocabulary", () => {
  const src = fileURLToPath(new URL("../../../src", import.meta.url))
  const declarations = Object.entries(events)
  const files = readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))

  /** Every text that stands in the code, comments left out. */
  const textsOf = (file: string): ReadonlyArray<string> => {
    const found: Array<string> = []
    const visit = (node: ts.Node): void => {
      if (ts.isStringLiteral(node)) found.push(node.text)
      ts.forEachChild(node, visit)
    }
    visit(ts.createSourceFile(file, readFileSync(join(src, file), "utf8"), ts.ScriptTarget.Latest))
    return found
  }

  it("declares no event that nothing emits", () => {
    const said = new Set(files.flatMap(textsOf))
    assert.deepStrictEqual(Object.keys(events).filter((event) => !said.has(event)), [])
  })

  it("declares no event that no test speaks of", () => {
    const tests = fileURLToPath(new URL("../..", import.meta.url))
    const spoken = readdirSync(tests, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts") && !name.endsWith("specified.ts"))
      .flatMap((name) => readFileSync(join(tests, name), "utf8").match(/\b[a-z0-9]+(?:_[a-z0-9]+)+\b/g) ?? [])
    const known = new Set(spoken)
    assert.deepStrictEqual(Object.keys(events).filter((event) => !known.has(event)), [])
  })

  it("is the one the documents list, no name less, and more only where it is said", () => {
    const declared = Object.keys(events)
    assert.sameMembers(declared.filter((event) => !specified.has(event)), [...own])
    assert.deepStrictEqual([...specified].filter((event) => !(event in events)), [])
  })

  it("is spoken through emit alone: nothing else logs or prints", () => {
    const offending = files.filter((file) => file !== "main.ts" && !file.startsWith(join("surfaces", "cli"))).flatMap((
      file
    ) =>
      (readFileSync(join(src, file), "utf8").match(/\bEffect\.log\w*\(|\bconsole\.\w+\(/g) ?? []).map((call) =>
        `${file}: ${call}`
      )
    )
    assert.deepStrictEqual(offending, [])
  })

  it("names events and fields in lower-case words, the first of a closed list", () => {
    const first = new Set(
      ("account admin audit authz certificate challenge csr db eab filter http ipam job jws key local metrics nonce notify order profile proxy publish renewal "
        + "request script server signer span tls trace upstream worker").split(" ")
    )
    for (const name of [...Object.keys(events), ...Object.keys(fields)]) assert.match(name, /^[a-z][a-z0-9_]*$/)
    assert.deepStrictEqual(Object.keys(events).filter((name) => !first.has(name.split("_")[0] ?? "")), [])
  })

  it("leaves no doubt between level and outcome", () => {
    for (const [event, { level, outcome }] of declarations) {
      if (level === "error") assert.strictEqual(outcome, "failure", event)
      if (outcome === "failure") assert.notStrictEqual(level, "info", event)
      if (outcome === "advisory") assert.strictEqual(level, "warn", event)
      assert.strictEqual(outcome === "progress", /_(?:started|requested)$/.test(event), event)
    }
  })

  it("calls what is usual and did not work a failure, and what did its work none", () => {
    const of = (outcome: string, level: string) =>
      declarations.filter(([, one]) => one.outcome === outcome && one.level === level).map(([event]) => event)
    assert.sameMembers(of("failure", "debug"), [
      "audit_reverse_dns_failed",
      "audit_reverse_dns_timeout",
      "tls_handshake_failed",
      "tls_handshake_timeout"
    ])
    const advisories = ["filter_rule_warned", "profile_unmounted", "db_job_leases_reclaimed", "job_lease_lost"]
    assert.includeMembers(of("advisory", "warn"), advisories)
  })

  it("shows by default what the specification does not tell apart as debug", () => {
    const hidden = declarations.filter(([event, { level }]) => level === "debug" && shownByDefault.has(event))
    assert.deepStrictEqual(hidden.map(([event]) => event), [])
  })

  it("has no field that would hide what every record has", () => {
    const reserved = ["timestamp", "level", "target", "span", "event", "outcome", "message"]
    assert.deepStrictEqual(reserved.filter((name) => name in fields), [])
  })
})

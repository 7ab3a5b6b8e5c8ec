import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { PassThrough } from "node:stream"
import { text as readAll } from "node:stream/consumers"
import { assert, describe } from "vitest"
import { emit } from "../../../src/domain/words/Log.ts"
import { accessWeight } from "../../../src/engine/http/Message.ts"
import { withinSpan } from "../../../src/engine/telemetry/EngineLog.ts"
import type { Span } from "../../../src/engine/telemetry/EventLog.ts"
import { parseFilter } from "../../../src/engine/telemetry/LogFilter.ts"
import type { SinkOptions } from "../../../src/engine/telemetry/Sink.ts"
import * as Sink from "../../../src/engine/telemetry/Sink.ts"
import { effectProp } from "../../support/Property.ts"

const human = {
  filter: parseFilter("trace"),
  json: false,
  spanEvents: "none" as const,
  flatten: false,
  colours: false,
  briefRequests: false,
  isShared: false
}
const json = { ...human, json: true }

/** Returns everything that a body logs through a sink, in its written form. */
const writesOf = (options: Omit<SinkOptions, "write">, body: Effect.Effect<unknown>) =>
  Effect.suspend(() => {
    const writes: Array<string> = []
    return Effect.as(
      Effect.provide(body, Sink.make({ ...options, write: (one) => void writes.push(one) }).layer),
      writes
    )
  })

/** Returns the lines of the output, and checks that each of them was terminated. */
const linesOf = (options: Omit<SinkOptions, "write">, body: Effect.Effect<unknown>) =>
  Effect.map(writesOf(options, body), (writes) => {
    const lines = writes.join("").split("\n")
    assert.strictEqual(lines.pop(), "", "the last line is ended")
    return lines
  })

const lineOf = (options: Omit<SinkOptions, "write">, body: Effect.Effect<unknown>) =>
  Effect.map(linesOf(options, body), (lines) => {
    assert.strictEqual(lines.length, 1)
    return lines[0] ?? ""
  })

interface Line {
  readonly fields: { readonly [name: string]: unknown }
  readonly span: Span
}

const parse = (line: string): Line => JSON.parse(line) as Line

const rejected = (identifiers: ReadonlyArray<string>) => emit("order_rejected", { reason: "malformed", identifiers })

const failed = (error: string) => emit("worker_presence_failed", { error })

/** Input from outside. It contains awkward characters much more often than random text does. */
const remote = fc.array(
  fc.oneof(
    fc.constantFrom(
      "\n",
      "\r",
      "\u0000",
      "\u001b[2J",
      "\u007f",
      "\u0085",
      "\u009b",
      "\u2028",
      "\u2029",
      "\u202e",
      "\u200b",
      "\u{e0041}",
      " x=y",
      "\"",
      "\\"
    ),
    fc.constantFrom("\\n", "\u00a0", "é", "\u{1f511}", "=", " ", "\t", "{}", ","),
    fc.string({ unit: "grapheme" })
  ),
  { maxLength: 12 }
).map((parts) => parts.join(""))

// oxlint-disable-next-line no-control-regex
const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202e\u200b\u{e0041}]/u

describe("JSON records", () => {
  it.effect("are written in pieces that a pipe takes as a whole, if other processes write to the stream too", () =>
    Effect.gen(function*() {
      const many = Effect.forEach(
        Array.from({ length: 30 }, (_, index) => index),
        (index) => rejected([`${index}-${"é".repeat(100)}`])
      )
      const alone = yield* writesOf(json, many)
      const shared = yield* writesOf({ ...json, isShared: true }, many)
      assert.lengthOf(alone, 1)
      assert.strictEqual(shared.join("").split("\n").length, 31)
      for (const piece of shared) {
        assert.isAtMost(Buffer.byteLength(piece), 4096)
        assert.isTrue(piece.endsWith("}\n"))
      }
      assert.isAbove(Buffer.byteLength(`${shared[0]}${shared[1]}`), 4096, "no more pieces than needed")
    }))

  it.effect("have time, level, target, fields and span", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(Date.UTC(2026, 1, 3, 4, 5, 6, 7))
      const line = yield* lineOf(
        json,
        withinSpan(
          { request_id: "r1", profile: undefined, uri: "/a?b" },
          0,
          emit("order_created", { order_id: "o1", identifiers: ["a.example"] })
        )
      )
      assert.deepStrictEqual(JSON.parse(line), {
        timestamp: "2026-02-03T04:05:06.007Z",
        level: "info",
        target: "acme_svc.order",
        fields: {
          event: "order_created",
          outcome: "success",
          order_id: "o1",
          identifiers: ["a.example"],
          message: "order created"
        },
        span: { request_id: "r1", uri: "/a?b" }
      })
    }))

  it.effect("have the fields of the event at the top level and the span apart from them if they are flattened", () =>
    Effect.gen(function*() {
      const line = yield* lineOf(
        { ...json, flatten: true },
        withinSpan({ request_id: "r1" }, 0, emit("tls_disabled", { base_url: "http://h" }))
      )
      assert.deepStrictEqual(JSON.parse(line), {
        timestamp: "1970-01-01T00:00:00.000Z",
        level: "warn",
        target: "acme_svc.tls",
        event: "tls_disabled",
        outcome: "advisory",
        base_url: "http://h",
        message: "tls disabled",
        span: { request_id: "r1" }
      })
    }))

  it.effect("omit unknown values, and keep values that are false, zero or empty", () =>
    Effect.gen(function*() {
      const line = yield* lineOf(
        json,
        emit("server_config_loaded", { path: "", file_present: false, keys_from_file: 0, keys_from_env: undefined })
      )
      assert.deepInclude(parse(line).fields, { path: "", file_present: false, keys_from_file: 0 })
      assert.notProperty(parse(line).fields, "keys_from_env")
    }))

  for (const flatten of [false, true]) {
    effectProp(
      `are one line without control characters and keep every text unchanged, ${flatten ? "flattened" : "nested"}`,
      [remote, remote],
      ([error, request_id]) =>
        Effect.gen(function*() {
          const line = yield* lineOf(
            { ...json, flatten },
            withinSpan({ request_id }, 0, failed(error))
          )
          assert.notMatch(line, control)
          const read = parse(line)
          const kept = flatten ? (read as unknown as Line["fields"])["error"] : read.fields["error"]
          assert.deepStrictEqual([kept, read.span["request_id"]], [error, request_id])
        })
    )
  }
})

describe("records for people", () => {
  it.effect("have time, level, event, fields and span", () =>
    Effect.gen(function*() {
      const line = yield* lineOf(
        human,
        withinSpan(
          { request_id: "r1", profile: undefined },
          0,
          emit("request_completed", { status: 200, latency_ms: 3 })
        )
      )
      assert.strictEqual(
        line,
        "1970-01-01T00:00:00.000Z INFO  request_completed outcome=success status=200 latency_ms=3 request_id=r1"
      )
    }))

  it.effect("have a value once if a field and the span have it, and both values if these differ", () =>
    Effect.gen(function*() {
      const line = yield* lineOf(
        human,
        withinSpan({ job_id: "j1", job_kind: "k1" }, 0, emit("job_enqueued", { kind: "k2", job_id: "j1" }))
      )
      assert.include(line, "job_enqueued outcome=success kind=k2 job_id=j1 job_kind=k1")
      assert.strictEqual(line.split("job_id=").length, 2)
      const other = yield* lineOf(
        human,
        withinSpan({ job_id: "j1" }, 0, emit("job_enqueued", { kind: "k", job_id: "j2" }))
      )
      assert.include(other, "job_id=j2 job_id=j1")
    }))

  it.effect("quote values that could be mistaken for something else", () =>
    Effect.gen(function*() {
      for (
        const [error, shown] of [
          ["plain", "plain"],
          ["", "\"\""],
          ["two words", "\"two words\""],
          ["a=b", "\"a=b\""],
          ["say \"x\"", "\"say \\\"x\\\"\""],
          ["red\u001b[31m", "red\\u001b[31m"],
          ["a\nb", "a\\nb"],
          ["two words\nand two \u007f", "\"two words\\nand two \\u007f\""]
        ] as const
      ) {
        const line = yield* lineOf(human, failed(error))
        assert.strictEqual(line, `1970-01-01T00:00:00.000Z WARN  worker_presence_failed outcome=failure error=${shown}`)
      }
    }))

  effectProp("are one line without control characters, in which no text can look like a field", [remote, remote], ([
    error,
    user_agent
  ]) =>
    Effect.gen(function*() {
      const line = yield* lineOf(
        human,
        withinSpan({ user_agent, request_id: "r1" }, 0, failed(error))
      )
      assert.notMatch(line, control)
      const words = line.replaceAll(/"(?:[^"\\]|\\.)*"/g, "text").split(/\s+/)
      assert.deepStrictEqual(words.slice(0, 3), ["1970-01-01T00:00:00.000Z", "WARN", "worker_presence_failed"])
      assert.deepStrictEqual(words.slice(3).map((word) => word.split("=")[0]), [
        "outcome",
        "error",
        "user_agent",
        "request_id"
      ])
    }))

  it.effect("are short for requests on a terminal, with the id of a request that failed", () =>
    Effect.gen(function*() {
      const answered = (status: number, more: Span = {}) =>
        withinSpan(
          { request_id: "r1", client_ip: "192.0.2.1", method: "GET", uri: "/a", version: "HTTP/1.1", ...more },
          0,
          emit("request_completed", { status, latency_ms: 3 }, accessWeight(status))
        )
      const brief = { ...human, briefRequests: true }
      assert.strictEqual(yield* lineOf(brief, answered(200)), "00:00:00Z 200 GET /a 3 ms")
      assert.strictEqual(yield* lineOf(brief, answered(404)), "00:00:00Z 404 GET /a 3 ms r1")
      assert.strictEqual(yield* lineOf(brief, answered(500)), "00:00:00Z WARN 500 GET /a 3 ms r1")
      const odd = yield* lineOf(
        { ...brief, colours: true },
        answered(500, { uri: "/\u001b[31m", request_id: "\u0007" })
      )
      assert.strictEqual(odd, "00:00:00Z \u001b[33mWARN \u001b[0m 500 GET /\\u001b[31m 3 ms \\u0007")
      const long = yield* lineOf(brief, answered(200, { uri: `/${"a".repeat(500)}` }))
      assert.strictEqual(long, `00:00:00Z 200 GET /${"a".repeat(95)}… 3 ms`)
      const none = withinSpan({ client_ip: "192.0.2.1" }, 0, emit("request_completed", { status: 400, latency_ms: 0 }))
      assert.strictEqual(yield* lineOf(brief, none), "00:00:00Z 400 no request, from 192.0.2.1 0 ms")
      assert.match(yield* lineOf(brief, failed("x")), / WARN {2}worker_presence_failed /)
      assert.match(yield* lineOf(human, answered(200)), / INFO {2}request_completed .*uri=\/a/)
    }))

  it.effect("use colour only for the level", () =>
    Effect.gen(function*() {
      const line = yield* lineOf({ ...human, colours: true }, failed("\u001b[31mred\u001b[0m"))
      const level = "\u001b[33mWARN \u001b[0m"
      assert.include(line, level)
      assert.notMatch(line.replace(level, ""), control)
    }))
})

for (const [form, options] of [["JSON", json], ["text", human]] as const) {
  describe(`the log as ${form}`, () => {
    it.effect("cuts a text at 500 characters", () =>
      Effect.gen(function*() {
        for (const [length, kept] of [[499, 499], [500, 500], [501, 500], [100_000, 500]] as const) {
          const line = yield* lineOf(options, failed("é".repeat(length)))
          assert.strictEqual(line.match(/é/g)?.length, kept)
          const names = yield* lineOf(options, rejected(["é".repeat(length)]))
          assert.strictEqual(names.match(/é/g)?.length, kept)
        }
      }))

    it.effect("shows the first ten of many names, with the total number", () =>
      Effect.gen(function*() {
        const names = Array.from({ length: 100 }, (_, index) => `<n${index}>`)
        const line = yield* lineOf(options, rejected(names))
        assert.deepStrictEqual(line.match(/<n\d+>/g), names.slice(0, 10))
        assert.match(line, /\bidentifiers_total"?[=:]100\b/)
        assert.notInclude(yield* lineOf(options, rejected(names.slice(0, 10))), "identifiers_total")
      }))

    it.effect("never shows the value of a secret", () =>
      Effect.gen(function*() {
        // Only a type error in the service could do this. The test shows that even then nothing is revealed.
        const secret = Redacted.make("hunter2") as unknown as string
        const body = withinSpan({ request_id: secret }, 0, Effect.all([failed(secret), rejected([secret])]))
        const text = (yield* linesOf(options, body)).join("\n")
        assert.notInclude(text, "hunter2")
        assert.include(text, "redacted")
      }))

    it.effect("contains spans as logging.span_events says", () =>
      Effect.gen(function*() {
        const told = { none: [], close: ["span_closed"], full: ["span_opened", "span_closed"] } as const
        for (const spanEvents of ["none", "close", "full"] as const) {
          const body = withinSpan({ request_id: "r" }, 0, Effect.void)
          const lines = yield* linesOf({ ...options, spanEvents }, body)
          assert.deepStrictEqual(lines.map((line) => /span_\w+/.exec(line)?.[0]), [...told[spanEvents]])
          const quiet = yield* linesOf({ ...options, spanEvents, filter: parseFilter("info") }, body)
          assert.deepStrictEqual(quiet, [])
        }
      }))

    it.effect("contains only records that pass the filter", () =>
      Effect.gen(function*() {
        const filter = parseFilter("acme_svc=warn,acme_svc.tls=off,acme_svc.job=debug")
        const lines = yield* linesOf(
          { ...options, filter },
          Effect.all([
            emit("tls_disabled", { base_url: "b" }),
            emit("request_completed", { status: 200, latency_ms: 1 }),
            emit("request_completed", { status: 500, latency_ms: 1 }, { level: "warn", outcome: "failure" }),
            emit("request_completed", { status: 200, latency_ms: 1 }),
            emit("job_enqueued", { kind: "k", job_id: "j" }),
            emit("nonce_rejected", { reason: "missing", nonce_fp: undefined })
          ])
        )
        assert.deepStrictEqual(lines.map((line) => /request_completed|job_enqueued|tls|nonce/.exec(line)?.[0]), [
          "request_completed",
          "job_enqueued"
        ])
      }))
  })
}

describe("the lines of the log", () => {
  const turn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

  it.effect("are one write for each turn of the event loop, and are in order", () =>
    Effect.gen(function*() {
      const writes = yield* writesOf(
        human,
        Effect.forEach([1, 2, 3], (round) =>
          Effect.andThen(
            Effect.forEach(["a", "b", "c"], (name) => emit("tls_disabled", { base_url: `${name}${round}` })),
            turn
          ))
      )
      assert.deepStrictEqual(
        writes.map((write) => [...write.match(/[abc]\d/g) ?? []]),
        [1, 2, 3].map((round) => [`a${round}`, `b${round}`, `c${round}`])
      )
    }))

  it.effect("are counted by the next line that can be written if they could not be written", () =>
    Effect.gen(function*() {
      const writes: Array<string> = []
      const full = Object.assign(new Error("no space left"), { code: "ENOSPC" })
      const faults: Array<Error | undefined> = [full, full, undefined, undefined, undefined]
      const sink = Sink.make({
        ...json,
        write: (one, done) => {
          writes.push(one)
          done(faults.shift())
        }
      })
      // Each of these records is written at once.
      const said = Effect.andThen(
        emit("server_fatal_error", { error: "x" }),
        Sink.LogOutput.use(({ state }) => Effect.succeed(state()))
      )
      const states = yield* Effect.provide(Effect.all([said, said, said, said, said]), sink.layer)
      assert.deepStrictEqual(states, [
        { lost: 1, trouble: "ENOSPC" },
        { lost: 2, trouble: "ENOSPC" },
        { lost: 2, trouble: undefined },
        { lost: 2, trouble: undefined },
        { lost: 2, trouble: undefined }
      ])
      const events = writes.join("").trim().split("\n").map((line) => (JSON.parse(line) as { fields: object }).fields)
      assert.deepStrictEqual(events.map((fields) => (fields as { event: string; count?: number }).count), [
        undefined,
        undefined,
        undefined,
        undefined,
        2,
        undefined
      ])
      assert.deepInclude(events[4], { event: "server_log_gap", outcome: "advisory" })
    }))

  it.effect("are written at once, together with the lines before them, if they are about an error", () =>
    Effect.gen(function*() {
      const writes: Array<string> = []
      yield* Effect.gen(function*() {
        yield* failed("before")
        assert.deepStrictEqual(writes, [])
        yield* emit("server_fatal_error", { error: "the end" })
        assert.strictEqual(writes.length, 1)
        assert.match(writes[0] ?? "", /before\n.*the end"\n$/)
      }).pipe(Effect.provide(Sink.make({ ...human, write: (one) => void writes.push(one) }).layer))
      yield* turn
      assert.strictEqual(writes.length, 1, "and nothing twice")
    }))

  const many = Effect.forEach(
    Array.from({ length: 5000 }, (_, index) => index),
    (count) =>
      Effect.andThen(
        emit("job_kind_unknown", { kind: "k", job_id: "j", count }),
        count % 100 === 0 ? turn : Effect.void
      ),
    { discard: true }
  )

  it.effect("all arrive if the reader is slow, and do not delay their callers", () =>
    Effect.gen(function*() {
      const slow = new PassThrough({ highWaterMark: 1 })
      yield* Effect.provide(many, Sink.make({ ...json, write: (one) => void slow.write(one) }).layer)
      slow.end()
      const lines = (yield* Effect.promise(() => readAll(slow))).trimEnd().split("\n")
      assert.deepStrictEqual(
        lines.map((line) => parse(line).fields["count"]),
        Array.from({ length: 5000 }, (_, n) => n)
      )
    }))

  it.effect("are lost without an effect on their callers if the reader has stopped reading", () =>
    Effect.gen(function*() {
      const reader = yield* Effect.acquireRelease(
        Effect.sync(() =>
          spawn("sh", ["-c", "exec 0<&-; echo closed; exec sleep 600"], { stdio: ["pipe", "pipe", "ignore"] })
        ),
        (process) => Effect.sync(() => process.kill())
      )
      const broken = once(reader.stdin, "error")
      yield* Effect.promise(() => once(reader.stdout, "data"))
      yield* Effect.provide(
        Effect.gen(function*() {
          yield* failed("unheard")
          const [error] = yield* Effect.promise(() => broken)
          assert.propertyVal(error, "code", "EPIPE")
          yield* many
          yield* emit("server_fatal_error", { error: "unheard" })
        }),
        Sink.make({ ...human, write: (one) => void reader.stdin.write(one) }).layer
      )
    }))
})

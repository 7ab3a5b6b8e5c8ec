import { describe, it } from "@effect/vitest"
import * as Dns from "dns-packet"
import { Array, Effect, Fiber, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { hash } from "node:crypto"
import type { Socket } from "node:dgram"
import { createSocket } from "node:dgram"
import { assert } from "vitest"
import type { DnsName } from "../../../src/domain/Identifier.ts"
import { baseName, normalizeIdentifier } from "../../../src/domain/Identifier.ts"
import { AlpnPeer } from "../../../src/engine/net/AlpnPeer.ts"
import { HttpGet } from "../../../src/engine/net/HttpGet.ts"
import { ResolveFailed, Resolver } from "../../../src/engine/net/Resolver.ts"
import type { Record as LogRecord } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import { Validator } from "../../../src/services/validation/Validator.ts"
import { mutate, seeded } from "../../crypto/Pki.ts"
import type { Entry } from "../../support/DnsAnswerer.ts"
import { dnsAnswerer, unasked } from "../../support/DnsAnswerer.ts"
import { runsOf, seedOf } from "../../support/Fuzz.ts"

const token = "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJyPCt92wr-oA"
const keyAuthorization = `${token}.9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI`
const valueOf = (text: string) => hash("sha256", text, "base64url")
const right = valueOf(keyAuthorization)
const wrong = valueOf("of another token")
const txtName = "_acme-challenge.a.example"

/** Returns the name that an authorization for this identifier proves. */
const proved = (identifier: string): DnsName => {
  const result = normalizeIdentifier(identifier, { dns01Enabled: true })
  return Result.isSuccess(result) ? baseName(result.success) : assert.fail(identifier)
}

interface Asked {
  readonly identifier?: string
  readonly keyAuthorization?: string
  readonly timeout_ms?: number
}

/**
 * Makes one attempt, which opens no connection. Returns its verdict, how many TXT records it reports, and every log
 * record.
 */
const attempt = (resolver: Layer.Layer<Resolver>, asked: Asked = {}) =>
  Effect.gen(function*() {
    const records: Array<LogRecord> = []
    const outside = Layer.mergeAll(
      resolver,
      AlpnPeer.layerScripted(() => Effect.die("dns-01 makes no handshake")),
      HttpGet.layerScripted(() => Effect.die("dns-01 asks no web server"))
    )
    const outcome = yield* Effect.flatMap(Validator, (validator) =>
      validator.validate({
        type: "dns-01",
        identifier: proved(asked.identifier ?? "a.example"),
        keyAuthorization: asked.keyAuthorization ?? keyAuthorization,
        challenge: {
          timeout_ms: asked.timeout_ms ?? 20_000,
          allow_loopback: true,
          denied_addresses: ["0.0.0.0/0", "::/0"],
          allowed_addresses: [],
          http_01: { port: 80, https_port: 443, follow_redirects: true, max_redirects: 5, max_response_bytes: 4096 },
          tls_alpn_01: { port: 443 }
        }
      })).pipe(
        Effect.match({
          onFailure: (failure) =>
            failure._tag === "ChallengeRefused"
              ? { verdict: `${failure.error} ${failure.reason}`, answers: failure.answers, detail: failure.detail }
              : { verdict: failure._tag, answers: undefined, detail: undefined },
          onSuccess: () => ({ verdict: "valid", answers: undefined, detail: undefined })
        }),
        Effect.provide(Validator.layer().pipe(Layer.provide(outside))),
        Effect.provide(layerMemory(records))
      )
    return { ...outcome, records }
  })

const answering = (texts: ReadonlyArray<string> | ResolveFailed) => Resolver.layerStatic({}, { [txtName]: texts })

describe("the TXT records of a name", () => {
  const valid: Record<string, ReadonlyArray<string>> = {
    "the one right value": [right],
    "several TXT, right one last": ["v=spf1 -all", wrong, "", right],
    "several TXT, right one first": [right, wrong],
    "the right value twice": [right, right],
    "right value as the 64th record": [...Array.makeBy(63, () => wrong), right],
    "right value among more than 64 records": [right, ...Array.makeBy(1000, () => wrong)]
  }
  for (const [row, texts] of Object.entries(valid)) {
    it.effect(`are valid in the case "${row}"`, () =>
      Effect.gen(function*() {
        const { records, verdict } = yield* attempt(answering(texts))
        assert.strictEqual(verdict, "valid")
        assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields]), [
          ["challenge_dns_01_matched", { identifier: "a.example", answers: texts.length }]
        ])
      }))
  }

  const digest = hash("sha256", keyAuthorization, "buffer")
  const refused: Record<string, ReadonlyArray<string>> = {
    "no record": [],
    "empty": [""],
    "another value of the same length": [wrong],
    "quoted": [`"${right}"`],
    "upper-cased": [right.toUpperCase()],
    "lower-cased": [right.toLowerCase()],
    "trailing space": [`${right} `],
    "leading space": [` ${right}`],
    "trailing line end": [`${right}\n`],
    "trailing U+0000": [`${right}\0`],
    "one character less": [right.slice(0, -1)],
    "one character more": [`${right}A`],
    "padded base64url": [`${right}=`],
    "base64": [digest.toString("base64")],
    "hexadecimal": [digest.toString("hex")],
    "the raw digest": [digest.toString("latin1")],
    "the value beyond ASCII": [
      Array.fromIterable(right).map((c) => String.fromCharCode(c.charCodeAt(0) + 0x100)).join("")
    ],
    "split over two records": [right.slice(0, 20), right.slice(20)],
    "right value beyond the 64th record": [...Array.makeBy(64, () => wrong), right],
    "the key authorization itself": [keyAuthorization],
    "the token": [token],
    "value of another account": [valueOf(`${token}.${"A".repeat(43)}`)],
    "value of another token": [valueOf(`${"A".repeat(43)}.9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI`)]
  }
  for (const [row, texts] of Object.entries(refused)) {
    it.effect(`give the error incorrectResponse in the case "${row}", and the log has their number but not their text`, () =>
      Effect.gen(function*() {
        const { answers, detail, records, verdict } = yield* attempt(answering(texts))
        const hasBlanks = texts.slice(0, 64).some((text) => text.replaceAll(/[\s"]/g, "") === right)
        const reason = texts.length === 0 ? "txt_absent" : hasBlanks ? "txt_blanks" : "txt_mismatch"
        assert.deepStrictEqual([verdict, answers], [`incorrectResponse ${reason}`, texts.length])
        const some = texts.length === 0
          ? "no TXT record"
          : `none of ${texts.length > 64 ? "the first 64 of " : ""}${texts.length} TXT records`
        const blanks = `a TXT record at ${txtName} has blanks or quotation marks around the expected value`
        assert.strictEqual(detail, hasBlanks ? blanks : `${some} at ${txtName}`)
        assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields["answers"] ?? fields["reason"]]), [
          ["challenge_dns_01_mismatch", texts.length],
          ["challenge_validation_failed", reason]
        ])
        const written = JSON.stringify(records)
        for (const text of [...texts, right, token]) if (text.length > 1) assert.notInclude(written, text)
      }))
  }
})

it.effect(
  "the validation by dns-01 succeeds with texts of any kind if one of the first 64 texts is exactly the expected value",
  () =>
    Effect.gen(function*() {
      const cut = fc.nat({ max: right.length })
      const text = fc.oneof(
        fc.tuple(cut, cut, fc.constantFrom("", " ", "\0", "\"", "=", ".", "A", "é")).map((
          [from, to, more]
        ) => right.slice(0, from) + more + right.slice(to)),
        fc.fullUnicodeString({ maxLength: 50 }),
        fc.constantFrom(right, wrong, "", keyAuthorization)
      )
      const anything = fc.array(text, { maxLength: 100, size: "max" })
      const rightBehind = fc.tuple(fc.constantFrom(1, 62, 63, 64, 65), fc.array(text)).map(
        ([count, more]) => [...Array.makeBy(count, () => wrong), right, ...more]
      )
      const cases = fc.sample(fc.oneof(anything, rightBehind), {
        numRuns: runsOf(500),
        seed: seedOf(1035)
      })
      const verdicts = new Set<string>()
      for (const texts of cases) {
        const { answers, verdict } = yield* attempt(answering(texts))
        const hasBlanks = texts.slice(0, 64).some((one) => one.replaceAll(/[\s"]/g, "") === right)
        const none = texts.length === 0 ? "txt_absent" : hasBlanks ? "txt_blanks" : "txt_mismatch"
        const expected = texts.slice(0, 64).includes(right) ? "valid" : `incorrectResponse ${none}`
        assert.strictEqual(verdict, expected, JSON.stringify(texts))
        if (verdict !== "valid") assert.strictEqual(answers, texts.length)
        verdicts.add(verdict)
      }
      assert.includeMembers([...verdicts], ["valid", "incorrectResponse txt_absent", "incorrectResponse txt_mismatch"])
    })
)

describe("the look-up", () => {
  for (const code of ["ESERVFAIL", "EREFUSED", "ETIMEOUT", "alias loop"]) {
    it.effect(`gives the error dns after ${code}`, () =>
      Effect.gen(function*() {
        const { answers, records, verdict } = yield* attempt(answering(new ResolveFailed({ name: txtName, code })))
        assert.deepStrictEqual([verdict, answers], ["dns resolve_failed", undefined])
        assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields["error"]]), [
          ["challenge_validation_failed", `${txtName}: ${code}`]
        ])
      }))
  }

  it.effect("finds no record after ENOTFOUND, as for a name that has only other records", () =>
    Effect.gen(function*() {
      const failed = new ResolveFailed({ name: txtName, code: "ENOTFOUND" })
      const { answers, verdict } = yield* attempt(answering(failed))
      assert.deepStrictEqual([verdict, answers], ["incorrectResponse txt_absent", 0])
    }))

  it.effect("gives the error dns if it exceeds its time, and is stopped", () =>
    Effect.gen(function*() {
      let ended = false
      const silent = Layer.succeed(Resolver, {
        ...unasked,
        texts: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => ended = true))
      })
      const fiber = yield* Effect.forkChild(attempt(silent, { timeout_ms: 5000 }))
      yield* TestClock.adjust(4999)
      assert.isFalse(ended)
      yield* TestClock.adjust(1)
      const { records, verdict } = yield* Fiber.join(fiber)
      assert.deepStrictEqual([verdict, ended], ["dns timeout", true])
      assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields]), [
        ["challenge_validation_timeout", {
          identifier: "a.example",
          elapsed_ms: 5000,
          error: "the look-up for a.example was not answered"
        }]
      ])
    }))

  it.effect("is one query for one name", () =>
    Effect.gen(function*() {
      for (const identifier of ["a.example", "A.Example.", "*.a.example"]) {
        const names: Array<string> = []
        const resolver = Layer.succeed(Resolver, {
          ...unasked,
          texts: (name) => Effect.sync(() => [names.push(name) === 1 ? right : wrong])
        })
        assert.strictEqual((yield* attempt(resolver, { identifier })).verdict, "valid")
        assert.deepStrictEqual(names, [txtName])
      }
    }))
})

describe("a look-up over the DNS", () => {
  const asking = (zone: Record<string, Entry>, fallback?: Entry) =>
    Effect.map(
      dnsAnswerer({ zone, ...fallback === undefined ? {} : { fallback } }),
      (answerer) => ({ ...answerer, ask: (asked?: Asked) => attempt(Resolver.layer(answerer.address), asked) })
    )

  const rows: Record<string, readonly [string, Record<string, Entry>, Entry?]> = {
    "several TXT, right one last": ["valid", { [txtName]: { TXT: ["v=spf1 -all", wrong, right] } }],
    "split in chunks": ["valid", { [txtName]: { TXT: [Array.fromIterable(right)] } }],
    "an empty chunk in between": ["valid", { [txtName]: { TXT: [[right.slice(0, 20), "", right.slice(20)]] } }],
    "through CNAME": ["valid", { [txtName]: { CNAME: "txt.b.example" }, "txt.b.example": { TXT: [right] } }],
    "through three CNAMEs": ["valid", {
      [txtName]: { CNAME: "b.example" },
      "b.example": { CNAME: "c.example" },
      "c.example": { CNAME: "d.example" },
      "d.example": { TXT: [right] }
    }],
    "wildcard TXT": ["valid", {}, { TXT: [right] }],
    "truncated UDP": ["valid", { [txtName]: { TXT: [right], truncate: true } }],
    "more records than a datagram holds": ["valid", { [txtName]: { TXT: [...Array.makeBy(60, () => wrong), right] } }],
    "quoted": ["incorrectResponse txt_blanks", { [txtName]: { TXT: [`"${right}"`] } }],
    "trailing space": ["incorrectResponse txt_blanks", { [txtName]: { TXT: [`${right} `] } }],
    "split over two records": ["incorrectResponse txt_mismatch", {
      [txtName]: { TXT: [right.slice(0, 20), right.slice(20)] }
    }],
    "chunks in the wrong order": ["incorrectResponse txt_mismatch", {
      [txtName]: { TXT: [[right.slice(20), right.slice(0, 20)]] }
    }],
    "right value beyond the 64th record": ["incorrectResponse txt_mismatch", {
      [txtName]: { TXT: [...Array.makeBy(64, () => wrong), right] }
    }],
    "no TXT at the name": ["incorrectResponse txt_absent", { [txtName]: { A: ["192.0.2.1"] } }],
    "right value at the name itself": ["incorrectResponse txt_absent", { "a.example": { TXT: [right] } }],
    "CNAME to a name without TXT": ["incorrectResponse txt_absent", {
      [txtName]: { CNAME: "b.example" },
      "b.example": { A: ["192.0.2.1"] }
    }],
    "CNAME to a name that does not exist": ["incorrectResponse txt_absent", { [txtName]: { CNAME: "b.example" } }],
    "CNAME loop": ["dns resolve_failed", {
      [txtName]: { CNAME: "b.example" },
      "b.example": { CNAME: txtName }
    }],
    "CNAME to itself": ["dns resolve_failed", { [txtName]: { CNAME: txtName } }],
    "SERVFAIL": ["dns resolve_failed", { [txtName]: { rcode: "SERVFAIL" } }],
    "REFUSED": ["dns resolve_failed", { [txtName]: { rcode: "REFUSED" } }],
    "NXDOMAIN": ["incorrectResponse txt_absent", {}]
  }
  for (const [row, [expected, zone, fallback]] of Object.entries(rows)) {
    it.live(`gives ${expected.split(" ")[0]} in the case "${row}"`, () =>
      Effect.gen(function*() {
        const { ask } = yield* asking(zone, fallback)
        assert.strictEqual((yield* ask()).verdict, expected)
      }))
  }

  it.live("gives the error dns if there is no reply", () =>
    Effect.gen(function*() {
      const { ask } = yield* asking({ [txtName]: { TXT: [right], drop: true } })
      assert.strictEqual((yield* ask({ timeout_ms: 300 })).verdict, "dns timeout")
    }))

  for (const forged of ["id", "port"] as const) {
    it.live(`ignores a reply with a spoofed ${forged}, and waits for a correct one`, () =>
      Effect.gen(function*() {
        const { ask, queried, zone } = yield* asking({ [txtName]: { TXT: [right], forged } })
        assert.strictEqual((yield* ask({ timeout_ms: 300 })).verdict, "dns timeout")
        const fiber = yield* Effect.forkChild(ask())
        yield* Effect.promise(() => queried(txtName, 2))
        zone.set(txtName, { TXT: [wrong] })
        assert.strictEqual((yield* Fiber.join(fiber)).verdict, "incorrectResponse txt_mismatch")
      }))
  }

  it.live("reaches a verdict after damaged replies, and never succeeds without the expected text", () =>
    Effect.gen(function*() {
      const random = seeded(seedOf(53))
      const { port } = yield* Effect.acquireRelease(
        Effect.callback<{ readonly socket: Socket; readonly port: number }>((resume) => {
          const socket = createSocket("udp4")
          socket.on("message", (octets, from) => {
            const { id = 0, questions = [] } = Dns.decode(octets)
            const answers = [{ type: "TXT", name: txtName, ttl: 0, data: wrong } as const]
            const flags = Dns.RECURSION_DESIRED | Dns.RECURSION_AVAILABLE
            const reply = Dns.encode({ type: "response", id, flags, questions, answers })
            // The id is not damaged, so that the message still counts as the reply to the question.
            const spoilt = mutate(mutate(reply.subarray(2), random), random)
            socket.send(Buffer.concat([reply.subarray(0, 2), spoilt]), from.port, from.address)
          })
          socket.bind(0, "127.0.0.1", () => resume(Effect.succeed({ socket, port: socket.address().port })))
        }),
        ({ socket }) => Effect.sync(() => socket.close())
      )
      const resolver = Resolver.layer(`127.0.0.1:${port}`)
      // If this machine stalls, an attempt is postponed and gives no verdict.
      const judged = Effect.repeat(
        Effect.map(attempt(resolver, { timeout_ms: 300 }), ({ verdict }) => verdict),
        { while: (verdict) => verdict === "ChallengePostponed" }
      )
      const verdicts = yield* Effect.forEach(Array.range(1, runsOf(200)), () => judged, { concurrency: 20 })
      for (const verdict of verdicts) {
        assert.match(verdict, /^(?:dns |incorrectResponse txt_(?:mismatch|absent|blanks))/)
      }
      assert.include(verdicts, "incorrectResponse txt_mismatch")
    }))

  it.live("finds the value of a name and the value of its wildcard at the same TXT name", () =>
    Effect.gen(function*() {
      const [base, wildcard] = ["token1.thumbprint", "token2.thumbprint"]
      const { ask, queries } = yield* asking({ [txtName]: { TXT: [valueOf(base), valueOf(wildcard)] } })
      const both = [
        { identifier: "a.example", keyAuthorization: base },
        { identifier: "*.a.example", keyAuthorization: wildcard }
      ]
      for (const asked of both) assert.strictEqual((yield* ask(asked)).verdict, "valid")
      const third = yield* ask({ identifier: "*.a.example", keyAuthorization: "token3.thumbprint" })
      assert.strictEqual(third.verdict, "incorrectResponse txt_mismatch")
      assert.deepStrictEqual(queries.map(({ name, type }) => [name, type]), Array.makeBy(3, () => [txtName, "TXT"]))
    }))
})

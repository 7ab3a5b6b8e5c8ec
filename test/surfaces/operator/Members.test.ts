import { Effect, Schema } from "effect"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import { act, noun } from "../../../src/surfaces/operator/Act.ts"
import type { Field } from "../../../src/surfaces/operator/Field.ts"
import * as fields from "../../../src/surfaces/operator/Field.ts"
import { nouns } from "../../../src/surfaces/operator/Nouns.ts"
import { sqlite } from "../../support/Databases.ts"
import { isFull } from "../../support/Full.ts"
import { freshPlace } from "../../support/RunCommand.ts"
import type { Kept, Spelling, Verdict, Written } from "../../support/Spellings.ts"
import { actsIn, routeIn, sent, spellingsOf } from "../../support/Spellings.ts"
import { useStore } from "../../support/UseTests.ts"

/*
 * Each member of each act is judged alike in every spelling: a request, a form, a page or a command line
 * (docs/contribute/decisions/acts.md, "One verdict in every spelling"). The acts are those of `Nouns.ts`, and two more
 * that together have every kind of member.
 */

const { flag, id, key, line, name, optional, or, paging, period, serial, texts, time, whole, word } = fields
const words = ["red", "blue"] as const
const ages = { least: -5, most: 366 }
const kinds = {
  text: optional(name("A name.")),
  ofWord: or(word(words, "A word."), "red"),
  ofId: optional(id("An id.")),
  ofSerial: optional(serial("A serial number.")),
  ofTime: optional(time("A time.")),
  ofNumber: or(whole("A number.", ages), 7),
  ofBounds: or(fields.clamped("A number that is moved.", ages), 7),
  ofTexts: optional(texts("Texts.")),
  isOn: optional(flag("On.")),
  isOff: or(flag("Off."), false),
  ...period,
  ...paging
}
const needed = {
  text: line("A text.", { longest: 8 }),
  ofWord: word(words, "A word."),
  ofNumber: whole("A number.", ages),
  ofTexts: texts("Texts.")
}
const common = { access: "admin", output: Schema.Struct({}), errors: [], run: () => Effect.succeed({}) } as const
const sample = noun({
  name: "samples",
  description: "Samples.",
  commands: { sample: "Samples." },
  acts: [
    act({
      ...common,
      id: "listSamples",
      does: "List samples",
      input: kinds,
      http: { route: "GET /api/samples" },
      cli: { command: "sample list", example: "sample list" }
    }),
    act({
      ...common,
      id: "changeSample",
      does: "Change a sample",
      input: { id: key("Its id."), ...kinds },
      http: { route: "PATCH /api/samples/{id}" },
      cli: { command: "sample change", example: "sample change" }
    }),
    act({
      ...common,
      id: "makeSample",
      does: "Make a sample",
      input: needed,
      http: { route: "POST /api/samples" },
      cli: { command: "sample make", example: "sample make" }
    })
  ]
})

/** Texts that at least one field accepts. */
const usual = [
  ..."1 name 01890a5d-ac96-774b-bcce-b302099a8057 a1b2 2026-01-01 a.example ann@example.org".split(" "),
  ..."mailto:ann@example.org 192.0.2.1 true 7200 names".split(" "),
  `1:${"0a".repeat(32)}`,
  "0a".repeat(32),
  "https://a.example/",
  "rsa-2048"
]

/** Numbers at and beyond every bound that a member may have, and texts that only look like a number. */
const numbers = [
  ..."0 2 7 11 366 367 2147483647 2147483648 9007199254740991 9007199254740992 10000000000000000".split(" "),
  ..."-0 -1 -6 -2147483648 -9007199254740993 -10000000000000000 +5 05 1e1 5.0 1.5 0x10 1_000 ٣ NaN Infinity".split(" ")
]

const odd = [
  ...usual,
  ...numbers,
  ..."x 😀 e\u0301".split(" ").flatMap((text) => [8, 9, 253, 254, 257, 1001, 5000].map((times) => text.repeat(times))),
  ..."a\u001bb a\u202eb a\u200bb a\ufeffb \ufffd -- -h a=b a&b %41 + null false [] {} \" __proto__ constructor".split(
    " "
  ),
  ..."TRUE yes 2026-02-31 2026-01-01T00:00:00Z A1:B2 01890A5D-AC96-774B-BCCE-B302099A8057".split(" "),
  "a\nb",
  "a\tb"
]

/** Random texts. */
const random = fc.sample(
  fc.oneof(fc.string({ unit: "grapheme" }), fc.string({ unit: "binary" }), fc.integer().map(String)),
  { numRuns: 10, seed: 42 }
)

/** Returns a number that identifies a field. */
const idOf = (field: Field<unknown>): number => members.findIndex((one) => one.field === field)

/**
 * Returns whether the verdict is expected to differ. A query or a form writes several texts as lines, and only JSON has
 * a type for true and false.
 */
const isOtherwise = ({ form }: Field<unknown>, { kind }: Spelling, text: string): boolean => {
  if (kind === "body") return form === "boolean" && !/^\s*(?:true|false)\s*$/.test(text)
  return form === "texts" && kind !== "flag" && /[\r\n]/.test(text)
}

/** Returns whether blanks are part of the value. */
const isSecret = (field: Field<unknown>): boolean => field.read(" a ") === " a "

const blanks = ["", " ", "\t", "\u00a0", "\u3000", " \r\n "]

/** Returns a text in the form of its member. */
const inForm = ({ form }: Field<unknown>, text: string) =>
  form === "integer" ? Number(text) : form === "boolean" ? text === "true" : form === "texts" ? [text] : text

/** Returns a text that a field accepts. */
const fitting = (field: Field<unknown>): string =>
  field.words[0] ?? [...field.form === "boolean" ? ["true"] : [], ...usual].find((text) =>
    field.read(inForm(field, text)) !== undefined
  ) ??
    assert.fail(`no text of the list fits: ${field.description}`)

/** Returns the members that an act needs, each with a fitting value. */
const neededBy = ({ act }: Kept): Written =>
  Object.fromEntries(
    Object.entries(act.input).flatMap(([member, field]) =>
      field.isNeeded || act.cli?.needs?.includes(member) === true ? [[member, [fitting(field)]]] : []
    )
  )

/** Every act, and each of its members. */
const acts = actsIn([sample, ...nouns])
const members = acts.flatMap((kept) =>
  Object.entries(kept.act.input).map(([member, field]) => ({ kept, member, field, others: neededBy(kept) }))
)

describe("each member of each act", () => {
  const { database, test } = useStore(sqlite)
  const { run, ...there } = freshPlace()
  const place: typeof there & { readonly run: typeof run } = {
    ...there,
    run: (words, around) => run(words, { env: { ACME_SVC_DATABASE__URL: database.url() }, ...around })
  }
  const spellings = new Map(acts.map((kept) => [kept, spellingsOf(kept, place)]))
  const spellingsFor = (kept: Kept, member: string) => (spellings.get(kept) ?? []).filter(({ has }) => has(member))

  /** Returns the result for one member: its value, or the code of the refusal. */
  const shortOf = (verdict: Verdict, member: string) =>
    "accepted" in verdict
      ? { accepted: Object.hasOwn(verdict.accepted, member) ? verdict.accepted[member] : undefined }
      : { refused: verdict.refused }

  /** Writes a value in a spelling, and records unexpected results. A refusal must name the member. */
  const checking = () => {
    const faults: Array<string> = []
    return {
      faults,
      check: Effect.fnUntraced(function*(
        kept: Kept,
        member: string,
        spelling: Spelling,
        written: Written,
        expected: ReturnType<typeof shortOf> | undefined,
        isNamed = true
      ) {
        const verdict = yield* spelling.write(written)
        if (verdict === undefined) return expected
        const short = shortOf(verdict, member)
        const what = `${kept.act.id} ${member} ${spelling.kind} ${JSON.stringify(written[member])?.slice(0, 80)}`
        const [is, meant] = [JSON.stringify(short), JSON.stringify(expected ?? short)]
        if (is !== meant) faults.push(`${what}: ${is}, not ${meant}`)
        if ("said" in verdict && isNamed && !verdict.said.includes(spelling.nameOf(member))) {
          faults.push(`${what}: ${verdict.said}`)
        }
        return short
      })
    }
  }

  test("gets one verdict on one text in every spelling", () =>
    Effect.gen(function*() {
      const { check, faults } = checking()
      const seen = new Set<unknown>()
      // Command lines take the longest. Outside the gate, few of the texts are tried with them.
      let lines = 0
      const isSpared = () => !isFull && lines++ % 32 !== 0
      for (const { field, kept, member, others } of members) {
        // Many lists have the same window, so each window is judged once in each set of spellings.
        const once = `${idOf(field)} ${spellingsFor(kept, member).map(({ kind }) => kind).join(" ")}`
        if (seen.has(once)) continue
        seen.add(once)
        const good = fitting(field)
        for (const text of [...odd, ...field.words, `${good}x`, ` ${good}\t`, ...random]) {
          if (text.trim() === "") continue
          let first: ReturnType<typeof shortOf> | undefined
          for (const spelling of spellingsFor(kept, member)) {
            if (isOtherwise(field, spelling, text) || (spelling.kind === "flag" && isSpared())) continue
            const verdict = yield* check(kept, member, spelling, { ...others, [member]: [text] }, first)
            first ??= verdict
          }
        }
      }
      assert.deepStrictEqual(faults, [])
    }))

  test("is accepted, without the blanks around it, if it fits", () =>
    Effect.gen(function*() {
      const { check, faults } = checking()
      for (const { field, kept, member, others } of members) {
        const good = fitting(field)
        const accepted = field.read(inForm(field, good))
        const written = isSecret(field) ? [good] : [good, ` ${good}\t`]
        for (const spelling of spellingsFor(kept, member)) {
          for (const text of written) {
            yield* check(kept, member, spelling, { ...others, [member]: [text] }, { accepted })
          }
        }
      }
      assert.deepStrictEqual(faults, [])
    }))

  test("is refused if it contains octets that are not UTF-8, or a character that not every database stores", () =>
    Effect.gen(function*() {
      const { check, faults } = checking()
      for (const { kept, member, others } of members) {
        for (const spelling of spellingsFor(kept, member)) {
          for (const text of ["a\ud800b", "a\u0000b"]) {
            yield* check(kept, member, spelling, { ...others, [member]: [text] }, { refused: "bad_request" }, false)
          }
        }
      }
      assert.deepStrictEqual(faults, [])
    }))

  /** Returns the verdict on a missing member. */
  const leftOut = (field: Field<unknown>) => field.isNeeded ? { refused: "bad_request" } : { accepted: field.absent }

  test("may be absent if it is optional, and is asked for if it is required", () =>
    Effect.gen(function*() {
      const { check, faults } = checking()
      for (const { field, kept, member, others } of members) {
        for (const spelling of spellingsFor(kept, member)) {
          yield* check(kept, member, spelling, { ...others, [member]: [] }, leftOut(field))
        }
      }
      assert.deepStrictEqual(faults, [])
    }))

  test("counts as absent in a query, a form and a page if it is blank, and is then refused in a body and on a command line", () =>
    Effect.gen(function*() {
      const { check, faults } = checking()
      for (const { field, kept, member, others } of members) {
        for (const spelling of spellingsFor(kept, member)) {
          if (isSecret(field) && spelling.kind === "body") continue
          const isRefused = (spelling.kind === "body" && field.isBlankAbsent !== true) || spelling.kind === "flag"
          for (const blank of blanks) {
            const written = { ...others, [member]: [blank] }
            // A body may contain a word outside the set of the member. A command line cannot express even that.
            const code = spelling.kind === "body" && field.words.length > 0 ? "invalid_status" : "bad_request"
            yield* check(kept, member, spelling, written, isRefused ? { refused: code } : leftOut(field))
          }
        }
      }
      assert.deepStrictEqual(faults, [])
    }))

  test("is refused if it is given twice, except for texts, which a command line takes one by one", () =>
    Effect.gen(function*() {
      const { check, faults } = checking()
      for (const { field, kept, member, others } of members) {
        const good = fitting(field)
        for (const spelling of spellingsFor(kept, member)) {
          const isList = field.form === "texts" && spelling.kind === "flag"
          const expected = isList ? { accepted: field.read([good, good]) } : { refused: "bad_request" }
          yield* check(kept, member, spelling, { ...others, [member]: [good, good] }, expected, false)
        }
      }
      assert.deepStrictEqual(faults, [])
    }))

  test("is refused together with an unknown member, except on a page", () =>
    Effect.gen(function*() {
      const { check, faults } = checking()
      for (const kept of acts) {
        for (const spelling of spellings.get(kept) ?? []) {
          for (const unknown of ["unknown", "__proto__", "constructor"]) {
            const expected = spelling.kind === "page" ? { accepted: undefined } : { refused: "bad_request" }
            yield* check(kept, unknown, spelling, { ...neededBy(kept), [unknown]: ["1"] }, expected, false)
          }
        }
      }
      assert.deepStrictEqual(faults, [])
    }))

  test("counts as absent from a body if it is null and optional, and must have its type otherwise", () =>
    Effect.gen(function*() {
      const faults: Array<string> = []
      const typesOf = (value: unknown) =>
        typeof value === "string"
          ? "text"
          : typeof value === "boolean"
          ? "boolean"
          : Number.isInteger(value)
          ? "integer"
          : Array.isArray(value) && value.every((one) => typeof one === "string")
          ? "texts"
          : undefined
      for (const { field, kept, member, others } of members) {
        const route = routeIn(kept)
        if (route === undefined || !Object.hasOwn(route.body, member)) continue
        for (const value of [null, "x", 1, 1.5, 1e300, true, [], ["x"], ["x", 5], [["x"]], {}, { a: 1 }]) {
          const type = typesOf(value)
          if (type === field.form || (field.form === "code" && (type === "text" || type === "integer"))) continue
          const body = Object.entries({ ...others, [member]: undefined }).flatMap(([other, [text = ""] = []]) =>
            Object.hasOwn(route.body, other) && other !== member
              ? [[other, inForm(kept.act.input[other] ?? field, text)] as const]
              : []
          )
          const path = Object.fromEntries(Object.keys(route.path).map((hole) => [hole, others[hole]?.[0] ?? ""]))
          const verdict = yield* sent(kept, {
            path,
            body: JSON.stringify(Object.fromEntries([...body, [member, value]]))
          }) ?? assert.fail("there is no route")
          const ofNull = field.ofNull === undefined ? leftOut(field) : { accepted: field.read(field.ofNull) }
          const expected = value === null ? ofNull : { refused: "bad_request" }
          const [is, meant] = [JSON.stringify(shortOf(verdict, member)), JSON.stringify(expected)]
          if (is !== meant) faults.push(`${kept.act.id} ${member} ${JSON.stringify(value)}: ${is}, not ${meant}`)
        }
      }
      assert.deepStrictEqual(faults, [])
    }))
})

import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import type { Language } from "../../../src/engine/template/Engine.ts"
import { compile } from "../../../src/engine/template/Engine.ts"
import { filters } from "../../../src/engine/template/TemplateFilters.ts"

/* Tests docs/contribute/decisions/templates.md. */

const subset: Language = { language: "subset", absent: "empty", fuel: 100_000, filters }
const pages: Language = { language: "whole", absent: "refused", fuel: 100_000, filters: {} }

const rendered = (text: string, variables: Record<string, unknown> = {}, language = subset, name = "t.j2") =>
  Effect.gen(function*() {
    const templates = yield* compile([{ name, text }], language)
    return yield* templates.render(name, variables)
  }).pipe(Effect.scoped)

const faults = (text: string, language = subset) =>
  Effect.map(
    Effect.flip(Effect.scoped(compile([{ name: "email/x.body.j2", text }], language))),
    (refused) => refused.message
  )

describe("the subset of the template language", () => {
  it.effect.each<readonly [string, Record<string, unknown>, string]>([
    ["{{ a.b }} {{ a.b.c.d }}|", { a: { b: 1 } }, "1 |"],
    ["{{ absent }}{{ absent.more }}{% if absent %}yes{% else %}no{% endif %}", {}, "no"],
    ["{% if n > 1 and not (x == 'y') or z != \"w\" %}yes{% endif %}", { n: 2, x: "x", z: "w" }, "yes"],
    ["{% if n < 1 %}a{% elif 'b' in list %}b{% else %}c{% endif %}", { n: 1, list: ["a", "b"] }, "b"],
    ["{% if 'c' not in list %}none{% endif %}", { list: ["a"] }, "none"],
    ["{% for x in list %}{{ loop.index }}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}", {
      list: ["a", "b"]
    }, "1a,2b"],
    ["{% for x in list %}{% if loop.first %}{{ x.name }}{% endif %}{% endfor %}", { list: [{ name: "n" }, {}] }, "n"],
    ["{# {{ nothing }} #}a{{ 'b}}' }}{{ 1.5 }}", {}, "ab}}1.5"],
    ["a\n{%- if a -%} \n b{% endif %}\n", { a: true }, "ab\n"],
    ["{{ at | date }} {{ 'x' | date }} {{ none_of_it | date }}", { at: 1_927_947_906 }, "2031-02-04T05:05:06Z x "],
    ["{{ list | join(', ') }}|{{ absent | join(',') }}|{{ 1 | join }}", { list: ["a", 2] }, "a, 2||1"],
    ["{{ absent | default('-') }}{{ 0 | default('-') }}{{ absent|default(a)|upper }}", { a: "b" }, "-0B"],
    ["{{ list|length }}{{ 'äöü'|length }}{{ absent|length }}", { list: [1, 2] }, "230"],
    ["{{ 'aB'|upper }}{{ 'aB'|lower }}{{ absent|upper }}", {}, "ABab"],
    ["{{ 'äöü😀'|truncate(4) }} {{ 'äöü😀x'|truncate(4) }} {{ 'ab'|truncate(1) }}", {}, "äöü😀 äöü… …"],
    [
      "{{ 'ab'|truncate(0) }}|{{ 'ab'|truncate(absent) }}|{{ absent|truncate(3) }}|{{ 12345|truncate(3) }}",
      {},
      "|ab||12…"
    ],
    ["{{ range }}{{ debug }}{{ dict }}{{ namespace }}", {}, ""]
  ])("renders %s with %j", ([text, variables, expected]) =>
    Effect.gen(function*() {
      assert.strictEqual(yield* rendered(text, variables), expected)
    }))

  it.effect("encodes any value as JSON, from which a parser gets the same value", () =>
    Effect.gen(function*() {
      const values = [
        "a\r\n\"\\</script>\u0000\u2028\u2029 ü 😀",
        ["a", { b: [1, { c: true }] }],
        { a: {} },
        1_700_000_000,
        false,
        null
      ]
      for (const value of values) {
        const text = yield* rendered("{{ value | tojson }}", { value })
        assert.notMatch(text, /[\u2028\u2029]/)
        assert.deepStrictEqual(JSON.parse(text), value)
      }
      assert.strictEqual(yield* rendered("{{ absent | tojson }}"), "null")
    }))

  it.effect("treats a value as data, whatever it contains", () =>
    Effect.gen(function*() {
      const value = "{{ secret }}{% for x in y %}<b>&"
      assert.strictEqual(yield* rendered("{{ value }}", { value, secret: "s" }), value)
    }))

  it.effect.each<readonly [string, string]>([
    ["a\n{{ a | reverse }}", "email/x.body.j2:2: the filter reverse is not known"],
    ["{{ a | join(1, 2) }}", "email/x.body.j2:1: the filter join does not take 2 arguments"],
    ["{{ a | date('%Y') }}", "email/x.body.j2:1: the filter date does not take 1 arguments"],
    ["{{ a | }}", "email/x.body.j2:1: the name of a filter is missing"],
    ["{% include 'x' %}", "email/x.body.j2:1: the tag include is not known"],
    ["{% macro f() %}{% endmacro %}", "email/x.body.j2:1: the tag macro is not known"],
    ["\n\n{% set a = 1 %}", "email/x.body.j2:3: the tag set is not known"],
    ["{% raw %}{% endraw %}", "email/x.body.j2:1: the tag raw is not known"],
    ["{% %}", "email/x.body.j2:1: the tag is empty"],
    ["{{ a.b() }}", "email/x.body.j2:1: a cannot be called"],
    ["{{ a['b'] }}", "email/x.body.j2:1: members are named after a dot, not in brackets"],
    ["{{ a + 1 }}", "email/x.body.j2:1: + is not expected there"],
    ["{{ a >= 1 }}", "email/x.body.j2:1: only == != < > compare"],
    ["{{ a if b }}", "email/x.body.j2:1: if is not expected there"],
    ["{{ a 'text' }}", "email/x.body.j2:1: a string is not expected there"],
    ["{{ true }}", "email/x.body.j2:1: true is not expected there"],
    ["{{ }}", "email/x.body.j2:1: the end of the tag is not expected there"],
    ["{% for a, b in c %}{% endfor %}", "email/x.body.j2:1: a loop reads: for name in list"],
    ["{% for a in b if c %}{% endfor %}", "email/x.body.j2:1: if is not expected there"],
    ["{% for a in b %}{{ loop.index0 }}{% endfor %}", "email/x.body.j2:1: loop.index0 is not known"],
    ["{{ (a }}", "email/x.body.j2:1: the end of the tag is not expected there"],
    // The engine itself refuses these, with messages of its own.
    ["a\n{% if a %}", "email/x.body.j2:2: syntax error: unexpected end of input, expected end of block"],
    ["{{ a", "email/x.body.j2:1: syntax error: unexpected end of input, expected end of variable block"]
  ])("refuses %j", ([text, expected]) =>
    Effect.gen(function*() {
      assert.strictEqual(yield* faults(text), expected)
    }))
})

describe("the template engine", () => {
  it.effect("escapes for HTML if the file name says so", () =>
    Effect.gen(function*() {
      const templates = yield* compile([
        { name: "layout.html.j2", text: "<h1>{% block title %}{% endblock %}</h1>" },
        { name: "page.html.j2", text: "{% extends 'layout.html.j2' %}{% block title %}{{ title }}{% endblock %}" }
      ], pages)
      assert.strictEqual(yield* templates.render("page.html.j2", { title: "<b>" }), "<h1>&lt;b&gt;</h1>")
      const absent = yield* Effect.flip(templates.render("page.html.j2", {}))
      assert.strictEqual(absent.message, "page.html.j2:1: undefined value")
      const unknown = yield* Effect.flip(templates.render("other.html.j2", {}))
      assert.include(unknown.message, "other.html.j2")
    }).pipe(Effect.scoped))

  it.effect.each<readonly [string, string]>([
    ["a\n{{ a|nothing }}", "a.html:2: the filter nothing is not known"],
    ["{{ 'x'|upper|nothing(1) }}", "a.html:1: the filter nothing is not known"],
    ["{% filter nothing %}{% endfilter %}", "a.html:1: the filter nothing is not known"],
    ["{% for x in y|nothing %}{% endfor %}", "a.html:1: the filter nothing is not known"],
    ["{% if a is nothing %}{% endif %}", "a.html:1: the test nothing is not known"],
    ["{% if a is not nothing %}{% endif %}", "a.html:1: the test nothing is not known"],
    ["\n\n{{ nothing(a) }}", "a.html:3: the function nothing is not known"],
    ["{{ debug() }}", "a.html:1: the function debug is not known"],
    ["{% import 'ui.html' as ui %}{{ ui.nothing(1) }}", "a.html:1: ui has no macro nothing"],
    ["{% import 'ui.html' as ui %}{% call ui.nothing(1) %}{% endcall %}", "a.html:1: ui has no macro nothing"],
    ["{% include 'nothing.html' %}", "a.html:1: there is no template 'nothing.html'"],
    ["{% extends 'nothing.html' %}", "a.html:1: there is no template 'nothing.html'"],
    ["{% import 'nothing.html' as ui %}", "a.html:1: there is no template 'nothing.html'"]
  ])(
    "refuses what does not exist before anything is rendered, for example %j",
    ([text, expected]) =>
      Effect.gen(function*() {
        const ui = { name: "ui.html", text: "{% macro id(x) %}{{ x|own }}{% endmacro %}" }
        const own = { ...pages, filters: { own: (value: unknown) => value } }
        const refused = yield* Effect.flip(Effect.scoped(compile([ui, { name: "a.html", text }], own)))
        assert.strictEqual(refused.message, expected)
      })
  )

  it.effect.each([
    "{% import 'ui.html' as ui %}{{ ui.id(1) }}{% from 'ui.html' import id as other %}{{ other(1) }}",
    "{% macro a(x) %}{{ caller() }}{% endmacro %}{% call a(1) %}{{ range(3)|join }}{% endcall %}",
    "{% block b %}{% endblock %}{% set n = namespace(a=1) %}{% for x in (1, 2) %}{{ loop.cycle(1, 2) }}{% endfor %}",
    "{% if (a) and (b) or not (c) is defined and a is divisibleby(2) and a is not in (1, 2) %}{% endif %}",
    "{% raw %}{{ a|nothing }}{{ nothing() }}{% endraw %}{# {{ a|nothing }} #}{{ 'a|nothing' }}",
    "{% include 'nothing.html' ignore missing %}{% include name %}{{ a.b|own }}{{ a.nothing }}"
  ])("accepts what exists, for example %s", (text) =>
    Effect.gen(function*() {
      const ui = { name: "ui.html", text: "{% macro id(x) %}{{ x|own }}{% endmacro %}" }
      const own = { ...pages, filters: { own: (value: unknown) => value } }
      yield* Effect.scoped(compile([ui, { name: "a.html", text }], own))
    }))

  it.effect("names every template that does not compile, with the line and the reason", () =>
    Effect.gen(function*() {
      const sources = [
        { name: "a.j2", text: "fine" },
        { name: "b.j2", text: "secret-text\n{% secret-tag %}" },
        { name: "c.j2", text: "{{ 'secret-string" }
      ]
      const refused = yield* Effect.flip(Effect.scoped(compile(sources, pages)))
      assert.deepStrictEqual(refused.faults.map(({ line, template }) => [template, line]), [["b.j2", 2], ["c.j2", 1]])
      assert.notInclude(refused.faults[1]?.message ?? "", "secret")
      assert.notInclude(refused.message, "secret-text")
    }))

  it.effect("stops a rendering that takes too long", () =>
    Effect.gen(function*() {
      const loops = "{% for a in n %}".repeat(8) + "{% endfor %}".repeat(8)
      const fault = yield* Effect.flip(rendered(loops, { n: [...Array(20).keys()] }))
      assert.strictEqual(fault.message, "t.j2:1: engine ran out of fuel")
      assert.strictEqual(yield* rendered("{{ 1 }}"), "1")
    }))

  it.effect("stops a rendering that takes too much memory", () =>
    Effect.gen(function*() {
      const language = { ...pages, fuel: 5_000_000, filters: { own: (value: unknown) => `own ${String(value)}` } }
      const before = yield* compile([{ name: "a.html", text: "{{ a|own }}" }], language)
      const doubling = (times: number) =>
        `{% set n = namespace(a="x") %}{% for i in range(${times}) %}{% set n.a = n.a ~ n.a %}{% endfor %}{{ n.a|length }}`
      const greedy = yield* compile([
        { name: "doubled", text: doubling(27) },
        { name: "repeated", text: "{{ (a * 300000000)|length }}" },
        {
          name: "looped",
          text: `{% for a in range(1000) %}{% for b in range(100) %}${"x".repeat(2000)}{% endfor %}{% endfor %}`
        },
        { name: "modest", text: doubling(20) }
      ], language)
      for (const name of ["doubled", "repeated", "looped"]) {
        const fault = yield* Effect.flip(greedy.render(name, { a: "x" }))
        assert.strictEqual(fault.message, `${name}: takes more memory than there is for templates, or nests too deep`)
        assert.strictEqual(yield* before.render("a.html", { a: "<b>" }), "own &lt;b&gt;")
        assert.strictEqual(yield* greedy.render("modest", {}), "1048576")
      }
      // Constants are computed at compile time.
      assert.match(yield* faults(`{{ "x" * 300000000 }}`, language), /^email\/x\.body\.j2: takes more memory/)
      assert.strictEqual(yield* before.render("a.html", { a: 1 }), "own 1")
    }).pipe(Effect.scoped))

  it.effect("never receives input that would damage the engine", () =>
    Effect.gen(function*() {
      const damaging = [
        `{{ ${"1 + ".repeat(100_000)}1 }}`,
        `{{ ${"-".repeat(10_000)}1 }}`,
        `{% if a %}${"{% elif a %}".repeat(5000)}{% endif %}`,
        `{{ ${"(".repeat(1000)}1${")".repeat(1000)} }}`,
        "{% if a %}".repeat(200),
        "{{ a }}".repeat(20_000)
      ]
      for (const text of damaging) {
        assert.match(yield* faults(text, pages), /longer than|more than|exceeds/)
        assert.strictEqual(yield* rendered("{{ a }}", { a: 1 }, pages), "1")
      }
      const throwing = { ...pages, filters: { boom: () => assert.fail("in a filter") } }
      assert.include((yield* Effect.flip(rendered("{{ 1 | boom }}", {}, throwing))).message, "in a filter")
      assert.strictEqual(yield* rendered("{{ a }}", { a: 1 }, pages), "1")
    }))
})

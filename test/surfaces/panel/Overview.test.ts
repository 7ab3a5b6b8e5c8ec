import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { Busy } from "../../../src/domain/OperatorError.ts"
import type { JobKind } from "../../../src/domain/words/JobKind.ts"
import * as jobRows from "../../../src/engine/queue/Job.ts"
import { JobId, periodicKey } from "../../../src/engine/queue/Job.ts"
import * as workers from "../../../src/engine/queue/Workers.ts"
import { Activity } from "../../../src/operations/operator/Activity.ts"
import { Attention } from "../../../src/operations/operator/Attention.ts"
import { sweepsOf } from "../../../src/operations/work/Rounds.ts"
import { databases, sqlite } from "../../support/Databases.ts"
import { callerAt, idLiteral, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { startsAt } from "../../support/Operators.ts"
import type { AskingPanel } from "../../support/Panel.ts"
import { entered, usePanel, wordsOf } from "../../support/Panel.ts"

/* The first page: what needs attention, and the trends (docs/contribute/decisions/panel.md, "Pages" and "Charts"). */

const day = 86_400

const row = (at: number, event: string, outcome = "success", profile = "default") =>
  sql(
    `INSERT INTO audit_log (created_at, event, outcome, actor_kind, profile)
     VALUES (${at}, '${event}', '${outcome}', 'acme', '${profile}')`
  )

/** Returns the state, the title and the link of each concern. */
const concernsOf = (text: string) =>
  [...text.replaceAll("&#x2f;", "/").matchAll(/<li class="concern ([a-z]+)">(.*?)<\/a>/gs)].map(
    ([, state = "", inner = ""]) => ({
      state,
      title: /<bdi>([^<]*)/.exec(inner)?.[1] ?? "",
      url: (/href="([^"]*)"/.exec(inner)?.[1] ?? "").replaceAll("&amp;", "&")
    })
  )

describe.each(databases)("the overview on $name", (backend) => {
  const { config, test } = usePanel(backend)
  /** Writes the rows that a worker leaves after the sweeps. */
  const sweeps = (kinds: ReadonlyArray<JobKind>) =>
    Effect.forEach(kinds, (kind, at) =>
      jobRows.insert({
        id: JobId(`01234567-89ab-7def-8123-00000000000${at}`),
        kind,
        dedupKey: periodicKey,
        payload: "{}",
        runAt: startsAt + day,
        maxAttempts: 5,
        deadline: undefined,
        now: startsAt
      }), { discard: true })
  const shown = (panel: AskingPanel, query = "") =>
    Effect.flatMap(entered(panel, "vic", "viewer"), (held) => panel.ask(`/ui/${query}`, held))

  test("says that all is well, and since when", (panel) =>
    Effect.gen(function*() {
      yield* sweeps([...sweepsOf(config)])
      yield* workers.present({ owner: "a", roles: "acme,worker", version: "1", startedAt: 1, now: startsAt })
      const page = yield* shown(panel)
      assert.strictEqual(page.status, 200)
      assert.deepStrictEqual(concernsOf(page.text), [])
      const words = wordsOf(page)
      assert.include(words, "All is well Nothing has needed attention since now 2027-01-15 08:00:15 UTC")
      assert.include(words, "As of 2027-01-15 08:00:15")
    }))

  test("points out what needs attention, with a link to each list", (panel) =>
    Effect.gen(function*() {
      const job = (id: number, kind: string, status: string, ago: number) =>
        sql(
          `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, last_error, created_at, updated_at, share)
           VALUES (${
            backend.dialect === "sqlite"
              ? `x'${String(id).padStart(32, "0")}'`
              : `'00000000-0000-0000-0000-${String(id).padStart(12, "0")}'`
          }, '${kind}', '${id}', '{}', '${status}', ${startsAt - ago}, 0, 3, ${
            status === "failed" ? "'<b>no</b>'" : "NULL"
          }, 1, 1, '')`
        )
      yield* sweeps([...sweepsOf(config)])
      yield* job(11, "late", "ready", 700)
      yield* job(12, "slow", "ready", 61)
      yield* job(13, "fine", "ready", 60)
      yield* job(14, "late", "failed", 5)
      yield* workers.present({ owner: "gone", roles: "worker", version: "1", startedAt: 1, now: startsAt - day })
      yield* row(startsAt - 10, "certificate_issue_failed", "failure")
      const page = yield* shown(panel)
      assert.deepStrictEqual(concernsOf(page.text).map(({ state, url }) => [state, url]), [
        ["bad", "/ui/workers"],
        ["bad", "/ui/workers"],
        ["wait", "/ui/jobs?status=failed&kind=late"]
      ])
      assert.notInclude(page.text, "<b>no</b>")
      const words = wordsOf(page)
      assert.include(words, "No worker is present Nothing is validated, issued, revoked or sent until a worker starts.")
      assert.include(words, "Runbook no-worker")
      assert.include(words, "acme-svc jobs list --status failed --kind late")
      assert.include(words, "1 failure in the audit trail within 24 hours.")
    }))

  test("is refreshed for as long as it is open", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const poll = (text: string) =>
        /data-poll="([^"]*)" data-poll-seconds="15"/.exec(text)?.[1]?.replaceAll("&amp;", "&").replaceAll(
          "&#x2f;",
          "/"
        ) ??
          assert.fail(text)
      const first = poll((yield* panel.ask("/ui/?range=7d", held)).text)
      assert.match(first, /^\/ui\/\?range=7d&poll=0&tag=/)
      const refresh = { ...held, headers: { "hx-request": "true", "x-panel-refresh": "1" } }
      assert.strictEqual((yield* panel.ask(first, refresh)).status, 204)
      yield* row(startsAt, "certificate_issued")
      yield* TestClock.adjust("15 seconds")
      const changed = yield* panel.ask(first, refresh)
      assert.strictEqual(changed.status, 200)
      assert.match(poll(changed.text), /poll=0/)
    }))

  test("is shown without the counts that take too long", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const late = new Busy({ retryAfter: 5 })
      const none = {
        trend: () => late,
        queue: late,
        refusals: late,
        totals: late,
        failures: late,
        issuanceTimes: late,
        endings: late
      }
      const unread = { concerns: [], unread: ["audit" as const], at: startsAt, wellSince: undefined }
      const page = yield* panel.ask("/ui/", held).pipe(
        Effect.provideService(Activity, none),
        Effect.provideService(Attention, { now: Effect.succeed(unread) })
      )
      assert.strictEqual(page.status, 200)
      const words = wordsOf(page)
      assert.include(words, "Not read in time: audit. There may be more than is shown.")
      assert.notInclude(words, "All is well")
      assert.include(words, "Counting the audit trail took too long.")
      for (const chart of ["Failed orders", "Time to a certificate", "Certificates that expire Show them"]) {
        assert.include(words, `${chart} Counting took too long. Try again`)
      }
    }))

  test("shows the total number of records", (panel) =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      for (let many = 0; many < 2; many++) yield* orderOf(caller, "a.example")
      const page = yield* shown(panel)
      assert.include(wordsOf(page), "In all 1 account , 2 orders and 0 EAB credentials .")
      // The records are counted once a minute.
      yield* orderOf(caller, "b.example")
      const held = yield* entered(panel, "vera", "viewer")
      const words = Effect.map(panel.ask("/ui/", held), wordsOf)
      assert.include(yield* words, "2 orders")
      yield* TestClock.adjust("1 minute")
      assert.include(yield* words, "3 orders")
    }))

  test("shows the trend of each period and profile", (panel) =>
    Effect.gen(function*() {
      yield* row(startsAt - 5, "certificate_issued")
      yield* row(startsAt - 5, "certificate_issued", "success", "other")
      yield* row(startsAt - 5, "certificate_revoked")
      const held = yield* entered(panel, "vic", "viewer")
      const all = yield* panel.ask("/ui/", held)
      assert.include(wordsOf(all), "15 Jan, 08:00–09:00, so far 2 0 1")
      assert.include(wordsOf(all), " all default other 24h 7d 30d ")
      assert.strictEqual(all.text.match(/<title>[^<]* UTC/g)?.length, 24)
      const one = yield* panel.ask("/ui/?profile=other&range=30d", held)
      assert.include(wordsOf(one), "15 Jan, so far 1 0 0")
      const current = ({ text }: typeof one) => {
        const tabs = text.slice(text.indexOf("id=\"trends\"")).matchAll(/aria-current="true">(?:<bdi>)?(\w+)/g)
        return [...tabs].map(([, word]) => word)
      }
      assert.deepStrictEqual([current(all), current(one)], [["all", "24h"], ["other", "30d"]])
      assert.include(one.text.replaceAll("&#x2f;", "/"), "href=\"/ui/?range=7d&amp;profile=other\"")
      assert.strictEqual(one.text.match(/<title>[^<]* UTC/g)?.length, 30)
      // A profile that does not exist has no certificates. The tile must not show the certificates of all profiles.
      const none = yield* panel.ask("/ui/?profile=%3Cb%3E", held)
      assert.strictEqual(none.status, 200)
      assert.notInclude(none.text, "<b>&")
      assert.include(wordsOf(none), "so far 0 0 0")
      // If the range is wrong, only the chart is refused.
      for (const query of ["range=9y", "range=7d&range=30d"]) {
        const odd = yield* panel.ask(`/ui/?${query}`, held)
        assert.strictEqual(odd.status, 400)
        assert.include(wordsOf(odd), "Needs attention")
        assert.match(wordsOf(odd), /range takes one of 24h, 7d, 30d|The parameter range was given twice/)
        assert.notInclude(wordsOf(odd), "so far")
      }
    }))

  test("shows why orders failed, how long certificates took, and when they end", (panel) =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const orderAt = Effect.fnUntraced(function*(at: number, set: string) {
        const { id } = yield* orderOf(caller, "a.example")
        yield* sql(`UPDATE orders SET created_at = ${at}, ${set} WHERE id = ${idLiteral(backend.dialect, id)}`)
        return id
      })
      const failed = (type: string) =>
        `status = 'invalid', error = '{"type":"urn:ietf:params:acme:error:${type}","status":400,"detail":""}'`
      yield* orderAt(startsAt - 60, failed("badCSR"))
      // What a validation met says more than the problem of its order.
      const refused = yield* orderAt(startsAt - 50, failed("unauthorized"))
      yield* sql(
        `UPDATE challenges SET error = '{"type":"urn:ietf:params:acme:error:dns","status":400,"detail":""}' WHERE authz_id IN
           (SELECT id FROM authorizations WHERE order_id = ${idLiteral(backend.dialect, refused)})`
      )
      yield* orderAt(startsAt - 40, failed("dns"))
      yield* orderAt(startsAt - 8 * day, failed("tls"))
      for (const [seconds, weeks] of [[2, 0], [4, 0], [70, 12]] as const) {
        const end = Math.floor(startsAt / day) * day + weeks * 7 * day + day
        const id = yield* orderAt(startsAt - 1000, `status = 'valid', certificate = 'x', cert_not_after = ${end}`)
        yield* sql(
          `INSERT INTO audit_log (created_at, event, outcome, actor_kind, profile, order_id)
           VALUES (${startsAt - 1000 + seconds}, 'certificate_issued', 'success', 'acme', 'default', '${id}')`
        )
      }
      yield* orderAt(
        startsAt,
        `status = 'valid', certificate = 'x', revoked_at = 1, cert_not_after = ${startsAt + day}`
      )
      yield* orderAt(startsAt, `status = 'valid', certificate = 'x', cert_not_after = ${startsAt - 1}`)
      const page = yield* shown(panel)
      const words = wordsOf(page)
      assert.include(words, "Failed orders 3 orders within 7 days")
      assert.match(words, /dns 2\s+badCSR 1\s+Time to a certificate the newest 3 certificates/)
      assert.match(
        words,
        /up to 1 s 0\s+up to 5 s 2\s+up to 15 s 0\s+up to 1 min 0\s+up to 5 min 1\s+up to 1 h 0\s+longer 0/
      )
      assert.include(words, "Half of them took up to 4 s , and 95 of 100 up to 70 s .")
      const weeks = [
        ...page.text.slice(page.text.indexOf("endings-title")).matchAll(/<tr><td>([^<]*)<td class="num">(\d+)/g)
      ]
      assert.deepStrictEqual(weeks.map(([, , count]) => count), ["2", ...Array.from({ length: 11 }, () => "0"), "1"])
      assert.deepStrictEqual(weeks.map(([, when]) => when).slice(0, 2), ["15 Jan–21 Jan", "22 Jan–28 Jan"])
    }))

  test("says in words that there is nothing to draw", (panel) =>
    Effect.gen(function*() {
      const words = wordsOf(yield* shown(panel))
      assert.include(words, "No order has failed within 7 days.")
      assert.include(words, "No certificate was issued within 30 days.")
      assert.include(words, "No certificate expires within the next thirteen weeks.")
    }))

  test("is shown to every role", (panel) =>
    Effect.gen(function*() {
      for (const role of ["viewer", "operator", "admin"] as const) {
        const held = yield* entered(panel, role, role)
        const page = yield* panel.ask("/ui/", held)
        assert.strictEqual(page.status, 200)
        assert.strictEqual(page.text.includes("Operators</a>"), role === "admin")
        const { text } = yield* panel.ask("/ui/", { ...held, headers: { "hx-request": "true" } })
        assert.notInclude(text, "<html")
        assert.include(text, "id=\"trends\"")
      }
      assert.strictEqual((yield* panel.ask("/ui/")).status, 303)
    }))
})

describe("the overview if the trail keeps three days", () => {
  const { test } = usePanel(sqlite, "[audit]\nretention_days = 3\n[challenge]\nbypass = true\n")

  test("says that earlier days are not kept", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const page = yield* panel.ask("/ui/?range=7d", held)
      const words = wordsOf(page)
      assert.include(words, "12 Jan, 06:00–12:00 not kept 12 Jan, 12:00–18:00 0 0 0")
      assert.include(words, "The audit trail keeps 3 days; what was before is not kept.")
      assert.include(page.text, ">not kept</text>")
      for (const profile of ["default", "other"]) {
        assert.include(words, `warning The profile ${profile} issues without validation`)
      }
    }))
})

describe("the overview if the trail keeps exactly the period of the chart", () => {
  const { test } = usePanel(sqlite, "[audit]\nretention_days = 29\n")

  test("says that the oldest day is not kept if a part of that day is missing", (panel) =>
    Effect.gen(function*() {
      const shown = (at: number) =>
        Effect.gen(function*() {
          yield* TestClock.setTime(at * 1000)
          const { text } = yield* panel.ask("/ui/?range=30d", yield* entered(panel, `vic${at}`, "viewer"))
          return text.includes("not kept")
        })
      const midnight = Math.ceil(startsAt / day) * day
      assert.deepStrictEqual(yield* Effect.forEach([midnight, midnight + 60], shown), [false, true])
    }))
})

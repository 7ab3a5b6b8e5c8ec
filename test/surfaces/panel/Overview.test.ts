import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { Busy } from "../../../src/domain/OperatorError.ts"
import type { JobKind } from "../../../src/domain/words/JobKind.ts"
import * as jobRows from "../../../src/engine/queue/Job.ts"
import { JobId, periodicKey } from "../../../src/engine/queue/Job.ts"
import * as workers from "../../../src/engine/queue/Workers.ts"
import { Activity } from "../../../src/operations/operator/Activity.ts"
import * as jobs from "../../../src/operations/operator/Jobs.ts"
import { sweepsOf } from "../../../src/operations/work/Rounds.ts"
import { Issuers } from "../../../src/services/signing/Issuers.ts"
import * as audit from "../../../src/store/AuditRows.ts"
import * as crls from "../../../src/store/revocation/Crls.ts"
import { databases, sqlite } from "../../support/Databases.ts"
import { callerAt, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { issuersOf } from "../../support/KnownIssuers.ts"
import { keyboard, startsAt } from "../../support/Operators.ts"
import type { AskingPanel } from "../../support/Panel.ts"
import { entered, usePanel, wordsOf } from "../../support/Panel.ts"

/* The first page: what needs attention, and the trends (docs/decisions/panel.md, "Pages" and "Charts"). */

const day = 86_400

const row = (at: number, event: string, outcome = "success", profile = "default") =>
  sql(
    `INSERT INTO audit_log (created_at, event, outcome, actor_kind, profile)
     VALUES (${at}, '${event}', '${outcome}', 'acme', '${profile}')`
  )

/** Returns the state and the text of each tile, by the path of its link. */
const tilesOf = (text: string) =>
  [...text.replaceAll("&#x2f;", "/").matchAll(/<a class="tile ([a-z]+)" href="([^"]*)">(.*?)<\/a>/gs)].map(
    ([, state = "", url = "", words = ""]) => ({
      state,
      url,
      words: words.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ").trim()
    })
  )

const issuer = (notAfter: number) => ({
  id: "ab".repeat(32),
  certificate: Buffer.from("x"),
  anchorPem: "",
  ledgerPath: "/nowhere",
  subject: "CN=CA",
  sha256: "cd",
  keyType: "ecdsa-p256" as const,
  keySource: "file" as const,
  nameConstraints: [],
  notBefore: 0,
  notAfter: notAfter + 1000 * day,
  firstToEnd: { notAfter, subject: "CN=Upper" }
})

const withCa = (notAfter: number) => Effect.provideService(Issuers, issuersOf(() => issuer(notAfter)))

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

  test("says which sweep was cancelled, and how to start it again", (panel) =>
    Effect.gen(function*() {
      yield* workers.present({ owner: "a", roles: "worker", version: "1", startedAt: 1, now: startsAt })
      yield* sweeps([...sweepsOf(config)])
      const [{ id, kind } = assert.fail("no row")] =
        (yield* jobs.list({ status: "ready" }, { limit: 1, offset: 0 })).items
      yield* jobs.cancel(keyboard, id)
      const tile = tilesOf((yield* shown(panel)).text).find(({ url }) => url === "/ui/jobs?status=cancelled")
      assert.deepStrictEqual(tile, {
        state: "bad",
        url: "/ui/jobs?status=cancelled",
        words: `1 sweep stopped ${kind}: cancelled; the next start of a worker brings it back.`
      })
    }))

  test("shows no warning when everything is in order", (panel) =>
    Effect.gen(function*() {
      yield* sweeps([...sweepsOf(config)])
      yield* workers.present({ owner: "a", roles: "worker", version: "1", startedAt: 1, now: startsAt })
      yield* crls.insert({
        issuer: issuer(0).id,
        number: 1,
        der: Buffer.from("x"),
        thisUpdate: startsAt,
        nextUpdate: startsAt + 7 * day
      })
      const { status, text } = yield* withCa(startsAt + 365 * day)(shown(panel))
      assert.strictEqual(status, 200)
      const tiles = tilesOf(text)
      assert.deepStrictEqual(tiles.map(({ state }) => state), Array.from({ length: 8 }, () => "good"))
      assert.deepStrictEqual(
        tiles.map(({ words }) => words),
        [
          "0 failed jobs",
          "none jobs that wait too long",
          "1 worker present",
          "0 refused in 24 hours",
          "0 expire in 7 days, not renewed",
          "current revocation lists",
          "365 days until a CA certificate ends",
          "none issue without validation"
        ].map((words, index) => index === 5 ? "current revocation list" : words)
      )
    }))

  test("points out what needs attention, with a link to each list", (panel) =>
    Effect.gen(function*() {
      const job = (id: number, kind: string, status: string, ago: number) =>
        sql(
          `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at, share)
           VALUES (${
            backend.dialect === "sqlite"
              ? `x'${String(id).padStart(32, "0")}'`
              : `'00000000-0000-0000-0000-${String(id).padStart(12, "0")}'`
          }, '${kind}', '${id}', '{}', '${status}', ${startsAt - ago}, 0, 3, 1, 1, '')`
        )
      yield* job(1, "late", "ready", 700)
      yield* job(2, "slow", "ready", 61)
      yield* job(3, "fine", "ready", 60)
      yield* job(4, "late", "failed", 5)
      yield* job(7, "fine", "failed", 5)
      yield* job(5, "slower", "ready", 600)
      yield* job(6, "stopped", "ready", 601)
      yield* workers.present({ owner: "gone", roles: "worker", version: "1", startedAt: 1, now: startsAt - day })
      yield* workers.present({ owner: "web", roles: "acme", version: "1", startedAt: 1, now: startsAt })
      yield* row(startsAt - 10, "certificate_issue_failed", "failure")
      const page = yield* withCa(startsAt + 89 * day)(shown(panel))
      const tiles = tilesOf(page.text)
      assert.deepStrictEqual(tiles.map(({ state, url }) => [state, url.replaceAll("&amp;", "&")]), [
        ["bad", "/ui/jobs?status=failed"],
        ["bad", "/ui/jobs?status=ready&kind=late"],
        ["bad", "/ui/workers"],
        ["wait", "/ui/audit?outcome=failure&since=2027-01-14T08%3A00%3A15Z"],
        ["good", "/ui/expiring?days=7&superseded=hide"],
        ["wait", "/ui/authorities"],
        ["bad", "/ui/authorities"],
        ["good", "/ui/profiles"]
      ])
      assert.strictEqual(tiles[0]?.words, "2 failed jobs")
      assert.include(tiles[1]?.words, "No worker has taken late for 11 minutes.")
      assert.include(tiles[2]?.words, "no worker is present")
      const words = wordsOf(page)
      assert.include(words, "late 1 0 1 11 minutes no worker has taken this kind for 11 minutes")
      assert.include(words, "slow 1 0 0 1 minute no worker has taken this kind for 1 minute")
      assert.include(words, "fine 1 0 1 1 minute late ")
      const states = [...page.text.matchAll(/<b class="(\w+)">[^<]*<\/b> no worker has taken/g)]
      assert.deepStrictEqual(states.map(([, state]) => state), ["bad", "wait", "wait", "bad"])
    }))

  test("warns in the last ninety days of a CA certificate", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const tile = (days: number) =>
        Effect.map(withCa(startsAt + days * day)(panel.ask("/ui/", held)), ({ text }) => {
          const { state, words } = tilesOf(text)[6] ?? { state: "", words: "" }
          return `${state} ${words}`
        })
      assert.deepStrictEqual(yield* Effect.forEach([-1, 1, 89, 90], tile), [
        "bad ended a CA certificate",
        "bad 1 day until a CA certificate ends",
        "bad 89 days until a CA certificate ends",
        "good 90 days until a CA certificate ends"
      ])
      const two = Effect.provideService(
        Issuers,
        issuersOf((profile: string) =>
          profile === "other"
            ? { ...issuer(startsAt + 5 * day), id: "cd".repeat(32) }
            : issuer(startsAt + 100 * day)
        )
      )
      const { text } = yield* two(panel.ask("/ui/", held))
      assert.strictEqual(tilesOf(text)[6]?.words, "5 days until a CA certificate ends", "of two, the first to end")
    }))

  test("is shown without the counts that take too long", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const late = new Busy({ retryAfter: 5 })
      const none = { trend: () => late, queue: late, refusals: late, losses: late, expiring: late, totals: late }
      const page = yield* Effect.provideService(panel.ask("/ui/", held), Activity, none)
      assert.strictEqual(page.status, 200)
      assert.deepStrictEqual(
        tilesOf(page.text).filter(({ state }) => state === "plain").map(({ url, words }) => [url, words]),
        [
          ["/ui/jobs", "unknown the queue Counting took too long."],
          ["/ui/audit?outcome=failure", "unknown refused in 24 hours Counting took too long."],
          ["/ui/expiring?days=7", "unknown expire in 7 days Counting took too long."]
        ]
      )
      const words = wordsOf(page)
      for (const what of ["all records", "the audit trail", "the queue"]) {
        assert.include(words, `Counting ${what} took too long.`)
      }
    }))

  test("says that the database has lost changes, with a link to the rows of the trail", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const first = panel.ask("/ui/", held)
      assert.notInclude(wordsOf(yield* first), "of changes in 7 days")
      const detail = { changes: 1, since: "", counts: {}, accounts: [], orders: [], serials: [] }
      yield* audit.record({ event: "changes_lost", actorKind: "system", detail })
      yield* TestClock.adjust("1 minute")
      const tile = tilesOf((yield* first).text).find(({ words }) => words.includes("of changes in 7 days"))
      assert.strictEqual(tile?.words, "1 loss of changes in 7 days The database went back to an older state.")
      assert.match(tile?.url ?? "", /^\/ui\/audit\?event=changes_lost&(?:amp;)?since=/)
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

  test("says that revocation lists are due or have expired", (panel) =>
    Effect.gen(function*() {
      const list = { issuer: issuer(0).id, number: 1, der: Buffer.from("x"), thisUpdate: 1 }
      yield* crls.insert({ ...list, nextUpdate: startsAt + 3 * day })
      const held = yield* entered(panel, "vic", "viewer")
      const tile = Effect.map(withCa(startsAt + 365 * day)(panel.ask("/ui/", held)), ({ text }) => tilesOf(text)[5])
      assert.deepInclude(yield* tile, { state: "wait", words: "1 revocation lists due" })
      yield* crls.replace({ ...list, number: 2, nextUpdate: startsAt }, 1)
      assert.deepInclude(yield* tile, { state: "bad", words: "1 revocation lists expired" })
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
        assert.include(wordsOf(odd), "Queue")
        assert.match(wordsOf(odd), /range takes one of 24h, 7d, 30d|The parameter range was given twice/)
        assert.notInclude(wordsOf(odd), "so far")
      }
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
      assert.deepInclude(tilesOf(page.text).at(-1), {
        state: "bad",
        words: "2 issue without validation default, other"
      })
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

import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { existsSync } from "node:fs"
import { assert, describe } from "vitest"
import { SignerFailed, ValidationPostponed } from "../../../src/domain/JobFailure.ts"
import { attentionCauseNames, declarationOf } from "../../../src/domain/words/AttentionCause.ts"
import * as workers from "../../../src/engine/queue/Workers.ts"
import { currentSeconds } from "../../../src/engine/Time.ts"
import { Attention } from "../../../src/operations/operator/Attention.ts"
import { signing } from "../../../src/operations/operator/CrlRecords.ts"
import { sweepsOf } from "../../../src/operations/work/Rounds.ts"
import type { TimedIssuer } from "../../../src/services/signing/Issuers.ts"
import { Issuers } from "../../../src/services/signing/Issuers.ts"
import * as audit from "../../../src/store/AuditRows.ts"
import * as compromised from "../../../src/store/revocation/CompromisedIssuers.ts"
import * as crls from "../../../src/store/revocation/Crls.ts"
import { nouns } from "../../../src/surfaces/operator/Nouns.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, configOf, orderOf, orderWith, profileOf, sql } from "../../support/Graph.ts"
import { issuersOf } from "../../support/KnownIssuers.ts"
import { startsAt } from "../../support/Operators.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* Tests what the service asks attention for, and that it asks for nothing if all is well. */

const day = 86_400
const issuerId = "ab".repeat(32)
const retried = new SignerFailed({ cause: "lint_failed", detail: "no SAN" }).row

const issuer = (notAfter: number) => ({
  id: issuerId,
  certificate: Buffer.from("x"),
  anchorPem: "",
  ledgerPath: "/nowhere",
  subject: "CN=Sample CA",
  sha256: "cd",
  keyType: "ecdsa-p256" as const,
  keySource: "file" as const,
  nameConstraints: [],
  notBefore: 0,
  notAfter,
  firstToEnd: { notAfter, subject: "CN=Sample CA" }
})

const withCa = (notAfter: number) => Effect.provideService(Issuers, issuersOf(() => issuer(notAfter)))

describe.each(databases)("what needs attention on $name", (backend) => {
  const { test } = useWorld(backend, { startsAt })
  const config = configOf()
  const idOf = (id: number) =>
    backend.dialect === "sqlite"
      ? `x'${String(id).padStart(32, "0")}'`
      : `'00000000-0000-0000-0000-${String(id).padStart(12, "0")}'`
  const quoted = (text: string | undefined) => text === undefined ? "NULL" : `'${text.replaceAll("'", "''")}'`

  let made = 0
  const job = (
    kind: string,
    given: { readonly status?: string; readonly error?: string; readonly ago?: number; readonly dueIn?: number }
  ) => {
    const { ago = 300, dueIn = 30, error, status = "ready" } = given
    const at = startsAt - ago
    return sql(
      `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, last_error, created_at,
         updated_at, share)
       VALUES (${idOf(++made)}, '${kind}', '${made}', '{}', '${status}', ${startsAt + dueIn}, 1, 3, ${
        quoted(error)
      }, ${at},
         ${at}, '')`
    )
  }

  /** Makes everything well: a worker, its sweeps, and a current list. */
  const well = Effect.gen(function*() {
    yield* workers.present({ owner: "a", roles: "acme,worker", version: "1", startedAt: 1, now: startsAt })
    for (const kind of sweepsOf(config)) yield* job(kind, {})
    const der = Buffer.from("x")
    yield* crls.insert({ issuer: issuerId, number: 1, der, thisUpdate: startsAt, nextUpdate: startsAt + 7 * day })
  })

  /** Moves the clock, and lets the worker be seen at the new time. */
  const later = (by: "10 seconds" | "1 hour") =>
    Effect.gen(function*() {
      yield* TestClock.adjust(by)
      yield* sql(`UPDATE workers SET last_seen_at = ${yield* currentSeconds}`)
    })

  const told = Effect.flatMap(Attention, ({ now }) => now)
  /** What needs attention if a CA that ends at a time issues for all profiles. */
  const toldOfCa = (notAfter: number) =>
    withCa(notAfter)(Effect.provide(told, Attention.layer(config), { local: true }))
  const causes = Effect.map(told, ({ concerns }) => concerns.map(({ cause }) => cause))

  test("is nothing if all is well, and since when", () =>
    Effect.gen(function*() {
      yield* well
      assert.deepStrictEqual(yield* told, { concerns: [], unread: [], at: startsAt, wellSince: startsAt })
      yield* TestClock.adjust("20 seconds")
      assert.deepInclude(yield* told, { at: startsAt + 20, wellSince: startsAt })
      yield* job("late", { status: "failed" })
      assert.deepInclude(yield* told, { wellSince: startsAt }, "the list is kept for ten seconds")
      yield* TestClock.adjust("10 seconds")
      assert.deepInclude(yield* told, { wellSince: undefined })
      yield* sql("DELETE FROM jobs WHERE kind = 'late'")
      yield* later("10 seconds")
      assert.deepInclude(yield* told, { concerns: [], wellSince: startsAt + 40 })
    }))

  test("is sorted: alarms first, then by cause, then the oldest first", () =>
    Effect.gen(function*() {
      yield* well
      yield* job("old", { status: "failed", ago: 900 })
      yield* job("new", { status: "failed", ago: 90 })
      yield* sql("DELETE FROM workers")
      const { concerns } = yield* told
      assert.deepStrictEqual(concerns.map(({ cause, severity }) => [cause, severity]), [
        ["acme_absent", "alarm"],
        ["worker_absent", "alarm"],
        ["jobs_failed", "warning"],
        ["jobs_failed", "warning"]
      ])
      assert.deepStrictEqual(concerns.map(({ since }) => since), [undefined, undefined, startsAt - 900, startsAt - 90])
    }))

  test("groups jobs that fail for the same reason, and names what it means for clients", () =>
    Effect.gen(function*() {
      yield* well
      const failed = (cause: "signer_failed" | "script_failed", detail: string) =>
        new SignerFailed({ cause, detail }).row
      yield* job("signer_relay_issue", { error: failed("signer_failed", "connect ECONNREFUSED 1"), ago: 500 })
      yield* job("signer_relay_issue", { error: failed("signer_failed", "connect ECONNREFUSED 2") })
      yield* job("signer_issue", { error: failed("script_failed", "the script took too long") })
      yield* job("notify_deliver", { error: "refused" })
      yield* job("notify_deliver", { error: "refused" })
      const { concerns } = yield* told
      assert.deepStrictEqual(concerns.map(({ cause, count, since }) => [cause, count, since]), [
        ["upstream_away", 2, startsAt - 500],
        ["script_fails", 1, startsAt - 300],
        ["jobs_retried", 2, startsAt - 300]
      ])
      assert.include(concerns[0]?.error, "ECONNREFUSED")
      assert.strictEqual(concerns[1]?.error, "script_failed: the script took too long")
      assert.strictEqual(concerns[0]?.way.path, "/ui/jobs?status=ready&kind=signer_relay_issue")
    }))

  test("is not a failure that a client causes, or one of the last minute", () =>
    Effect.gen(function*() {
      yield* well
      yield* job("challenge_validate", { error: "the client answered wrongly" })
      yield* job("signer_issue", { error: retried, ago: 59 })
      assert.deepStrictEqual(yield* causes, [])
      yield* job("challenge_validate", { error: new ValidationPostponed({ detail: "no more sockets" }).row })
      yield* job("signer_issue", { error: retried, ago: 60 })
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* causes, ["jobs_retried", "jobs_retried"])
    }))

  test("is a kind of job that no worker takes, or whose attempt does not end", () =>
    Effect.gen(function*() {
      yield* well
      yield* job("slow", { dueIn: -61 })
      yield* job("late", { dueIn: -601 })
      yield* job("fine", { dueIn: -60 })
      yield* job("endless", { status: "running", ago: 901 })
      yield* job("working", { status: "running", ago: 900 })
      const { concerns } = yield* told
      assert.deepStrictEqual(
        concerns.map(({ cause, severity, way }) => [cause, severity, way.path.replace(/.*kind=/, "")]),
        [
          ["queue_stalled", "alarm", "late"],
          ["queue_stalled", "warning", "slow"],
          ["job_runs_long", "warning", "endless"]
        ]
      )
    }))

  test("is a process that ended without a shutdown, unless a role is missing with it", () =>
    Effect.gen(function*() {
      yield* well
      yield* workers.present({ owner: "host:7:x", roles: "worker", version: "1", startedAt: 1, now: startsAt - 99 })
      const { concerns } = yield* told
      assert.deepStrictEqual(concerns.map(({ cause, error, since }) => [cause, since, error]), [
        ["process_gone", startsAt - 99, "host:7 (worker)"]
      ])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual((yield* told).concerns.map(({ cause, since }) => [cause, since]), [
        ["acme_absent", startsAt],
        ["worker_absent", startsAt]
      ])
    }))

  test("is background work that keeps failing, in a process that is there", () =>
    Effect.gen(function*() {
      yield* well
      const row = { roles: "worker", version: "1", startedAt: 1 }
      yield* workers.present({ ...row, owner: "host:7:x", now: startsAt, failing: "job_periodic tls_expiry" })
      yield* workers.present({ ...row, owner: "host:8:y", now: startsAt, failing: "tls_expiry" })
      const { concerns } = yield* told
      assert.deepStrictEqual(concerns.map(({ cause, count, error, title }) => [cause, count, title, error]), [[
        "loops_failing",
        2,
        "Background work keeps failing in 2 processes: job_periodic, tls_expiry",
        "host:7 (job_periodic, tls_expiry), host:8 (tls_expiry)"
      ]])
      yield* sql("UPDATE workers SET failing = '' WHERE owner LIKE 'host%'")
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* causes, [])
    }))

  test("is a sweep that was cancelled", () =>
    Effect.gen(function*() {
      yield* well
      yield* sql("UPDATE jobs SET status = 'cancelled' WHERE kind = 'nonce_sweep'")
      const { concerns } = yield* told
      assert.deepStrictEqual(concerns.map(({ cause }) => cause), ["sweep_stopped"])
      assert.strictEqual(concerns[0]?.title, "The sweep nonce_sweep is stopped")
    }))

  test("is a CA that ends, and its list", () =>
    Effect.gen(function*() {
      yield* well
      const at = (seconds: number) =>
        Effect.gen(function*() {
          yield* later("10 seconds")
          const { concerns } = yield* toldOfCa(startsAt + seconds)
          return concerns.map(({ cause, severity }) => `${severity} ${cause}`)
        })
      assert.deepStrictEqual(yield* Effect.forEach([-1, 6 * day, 89 * day, 91 * day], at), [
        ["alarm ca_ended"],
        ["alarm ca_ending"],
        ["warning ca_ending"],
        []
      ])
      const list = { issuer: issuerId, der: Buffer.from("x"), thisUpdate: 1 }
      yield* crls.replace({ ...list, number: 2, nextUpdate: startsAt + 2 * day }, 1)
      assert.deepStrictEqual(yield* at(365 * day), ["warning list_due"])
      yield* crls.replace({ ...list, number: 3, nextUpdate: startsAt }, 2)
      assert.deepStrictEqual(yield* at(365 * day), ["alarm list_expired"])
      yield* sql("DELETE FROM crls")
      assert.deepStrictEqual(yield* at(365 * day), ["warning list_missing"])
    }))

  test("is no CA that ends as expected, because others issue at all of its profiles", () =>
    Effect.gen(function*() {
      yield* well
      const retired = { from: undefined, issuer: issuer(startsAt - 1) }
      const present = { from: 0, issuer: { ...issuer(startsAt + 365 * day), id: "cd".repeat(32) } }
      const list = { number: 1, der: Buffer.from("x"), thisUpdate: startsAt, nextUpdate: startsAt + 7 * day }
      yield* crls.insert({ ...list, issuer: present.issuer.id })
      const causesWith = (...states: ReadonlyArray<TimedIssuer>) =>
        Effect.gen(function*() {
          yield* later("10 seconds")
          const issuers = {
            ...issuersOf(() => undefined),
            all: (profile: string) => profile === "default" ? states : []
          }
          const asked = Effect.provide(told, Attention.layer(config), { local: true })
          const { concerns } = yield* Effect.provideService(asked, Issuers, issuers)
          return concerns.map(({ cause }) => cause)
        })
      assert.deepStrictEqual(yield* causesWith(present, retired), [])
      assert.deepStrictEqual(yield* causesWith({ ...retired, from: 1 }, present), ["ca_ended"])
      const twoProfiles = {
        ...issuersOf(() => undefined),
        all: (profile: string) => profile === "one" ? [present, retired] : [{ ...retired, from: 1 }]
      }
      const named = yield* Effect.provideService(signing(["one", "two"]), Issuers, twoProfiles)
      assert.deepInclude(named.get(issuerId), { issuance: "issuing", profiles: ["one", "two"] })
    }))

  test("is a CA that is compromised, and a profile for which no worker can sign", () =>
    Effect.gen(function*() {
      yield* well
      yield* compromised.insert({ issuer: issuerId, now: startsAt - 5, actorKind: "cli", actorId: undefined })
      yield* sql(
        `INSERT INTO profile_states (profile, owner, trouble, since, stopped_issuer)
         VALUES ('default', 'a', 'its key cannot be read', ${startsAt - 9}, '${issuerId}')`
      )
      const { concerns } = yield* toldOfCa(startsAt + 365 * day)
      assert.deepStrictEqual(concerns.map(({ cause, error, since }) => [cause, since, error]), [
        ["ca_compromised", startsAt - 5, undefined],
        ["profile_degraded", startsAt - 9, "its key cannot be read"],
        ["list_stopped", undefined, "its key cannot be read"]
      ])
    }))

  test("is an account with many orders and no certificate", () =>
    Effect.gen(function*() {
      yield* well
      const caller = yield* callerAt(profileOf(config))
      for (let many = 0; many < 59; many++) yield* orderOf(caller, "a.example")
      assert.deepStrictEqual(yield* causes, [])
      yield* orderOf(caller, "a.example")
      yield* TestClock.adjust("10 seconds")
      const { concerns } = yield* told
      assert.deepStrictEqual(concerns.map(({ cause, count }) => [cause, count]), [["client_loops", 60]])
      yield* later("1 hour")
      assert.notInclude(yield* causes, "client_loops")
    }))

  test("is a certificate that nobody renews, in its last week and the last fifth of its lifetime", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const endsIn = (days: number) => `status = 'valid', certificate = 'x', cert_not_after = ${startsAt + days * day}`
      yield* orderWith(caller, endsIn(6), "short.example")
      yield* orderWith(caller, endsIn(90), "long.example")
      const missing = Effect.map(
        told,
        ({ concerns }) => concerns.find(({ cause }) => cause === "renewals_missing")?.count
      )
      for (
        const [days, count] of [[0, undefined], [4.7, undefined], [4.9, 1], [6.1, undefined], [82.9, undefined], [
          83.1,
          1
        ]] as const
      ) {
        yield* TestClock.setTime((startsAt + days * day) * 1000)
        assert.strictEqual(yield* missing, count, `after ${days} days`)
      }
    }))

  test("is a series of wrong codes of an operator, but no typing error", () =>
    Effect.gen(function*() {
      yield* well
      const wrong = (key: string, attempts: number, ago: number) =>
        sql(
          `INSERT INTO login_attempts (key, window_started_at, attempts) VALUES ('${key}', ${
            startsAt - ago
          }, ${attempts})`
        )
      yield* wrong("mfa:typing", 2, 60)
      yield* wrong("mfa:earlier", 5, 901)
      yield* wrong("192.0.2.1", 9, 60)
      assert.deepStrictEqual(yield* causes, [])
      yield* wrong("mfa:lost@192.0.2.1", 4, 60)
      yield* later("10 seconds")
      const { concerns } = yield* told
      assert.deepStrictEqual(concerns.map(({ cause, count, since }) => [cause, count, since]), [
        ["second_factor_refused", 4, startsAt - 60]
      ])
    }))

  test("is what the audit trail shows", () =>
    Effect.gen(function*() {
      yield* well
      const detail = { changes: 1, since: "", counts: {}, accounts: [], orders: [], serials: [] }
      yield* audit.record({ event: "changes_lost", actorKind: "system", detail })
      yield* audit.record({
        event: "certificate_revoked",
        actorKind: "cli",
        actorId: "root",
        reason: "1",
        detail: { authorized_by: "operator" }
      })
      yield* sql(
        `INSERT INTO audit_chain_checks (id, begun_at, ended_at, faults, ended_faults)
         VALUES (1, ${startsAt - 4 * day}, ${startsAt - 4 * day}, 0, 2)`
      )
      const { concerns } = yield* told
      assert.deepStrictEqual(concerns.map(({ cause, count }) => [cause, count]), [
        ["changes_lost", 1],
        ["audit_chain_faulty", 2],
        ["key_compromised", 1],
        ["audit_chain_unchecked", undefined]
      ])
    }))

  test("is only the absence of workers, and not what follows from it", () =>
    Effect.gen(function*() {
      yield* job("late", { dueIn: -601 })
      assert.deepStrictEqual(yield* causes, ["acme_absent", "worker_absent"])
      yield* workers.present({ owner: "a", roles: "acme,worker", version: "1", startedAt: 1, now: startsAt })
      yield* later("10 seconds")
      assert.deepStrictEqual(yield* causes, ["sweep_stopped", "queue_stalled"])
    }))

  test("names the sources that cannot be read, and shows the others", () =>
    Effect.gen(function*() {
      yield* well
      yield* job("late", { status: "failed" })
      yield* sql("ALTER TABLE campaigns RENAME TO hidden_campaigns")
      const { concerns, unread, wellSince } = yield* Effect.ensuring(
        told,
        Effect.orDie(sql("ALTER TABLE hidden_campaigns RENAME TO campaigns"))
      )
      assert.deepStrictEqual([concerns.map(({ cause }) => cause), unread, wellSince], [
        ["jobs_failed"],
        ["certificates"],
        undefined
      ])
    }))

  test("names commands and runbooks that exist", () =>
    Effect.gen(function*() {
      yield* sql("DELETE FROM workers")
      yield* job("late", { status: "failed", error: retried })
      yield* job("signer_issue", { error: retried })
      const commands = nouns.flatMap(({ acts }) => acts.flatMap(({ cli }) => cli === undefined ? [] : [cli.command]))
      for (const { way: { command } } of (yield* told).concerns) {
        assert.isTrue(commands.some((one) => command === one || command.startsWith(`${one} `)), command)
      }
      for (const cause of attentionCauseNames) {
        assert.isTrue(existsSync(`docs/operate/runbooks/${declarationOf(cause).runbook}.md`), cause)
      }
    }))
})

import { assert, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as Runner from "../../src/engine/queue/Runner.ts"
import * as workers from "../../src/engine/queue/Workers.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import { knownWords } from "../../src/operations/OlderProcesses.ts"
import * as crl from "../../src/operations/work/crl/ListPublication.ts"
import { recover } from "../../src/operations/work/Sweeps.ts"
import { Passwords } from "../../src/services/operators/Passwords.ts"
import type { Table } from "../../src/store/transfer/CopiedTable.ts"
import { tables } from "../../src/store/transfer/Tables.ts"
import { handlers } from "../../src/surfaces/jobs/JobHandlers.ts"
import type { Asking } from "../support/Api.ts"
import { apiOf, signedIn } from "../support/Api.ts"
import type { Held } from "../support/Asked.ts"
import { databases, freshDirectory } from "../support/Databases.ts"
import { isFull } from "../support/Full.ts"
import type { World } from "../support/Graph.ts"
import { callerAt, configOf, fieldsOf, profileOf, sql, world } from "../support/Graph.ts"
import { issueTo, profilesIn } from "../support/Issued.ts"
import { startsAt } from "../support/Operators.ts"
import type { AskingPanel } from "../support/Panel.ts"
import { panelOf } from "../support/Panel.ts"
import { populate } from "../support/Populated.ts"
import { useStore } from "../support/UseTests.ts"

/*
 * A restore, a copy or a manual change may leave a row that cannot be decoded. The log must name the row, and
 * everything else must work as before (docs/contribute/decisions/unreadable-rows.md).
 */

const config = configOf(`
[order]
retention_days = 30
[audit]
retention_days = 30
`)

/** The text columns that contain JSON. */
const jsonColumns = new Set([
  "accounts.contact",
  "orders.identifiers",
  "orders.error",
  "authorizations.identifier",
  "challenges.error",
  "admin_users.known_login_ips",
  "api_tokens.allowed_addresses",
  "audit_log.identifiers",
  "audit_log.detail",
  "jobs.payload",
  "jobs.last_error"
])

const lists = [
  "/accounts",
  "/eab",
  "/orders",
  "/orders?status=valid",
  "/certificates",
  "/certificates?sort=soonest",
  "/expiring",
  "/upstream-orders",
  "/audit",
  "/jobs",
  "/queue",
  "/workers",
  "/notify/deliveries",
  "/nonces",
  "/profiles",
  "/cas",
  "/search?q=a.example",
  "/trends",
  "/operators",
  "/tokens",
  "/account/sessions"
]

/** The rows that are damaged, one at a time. */
const details = [
  "/accounts/01900001-0000-7000-8000-000000000001",
  "/accounts/01900001-0000-7000-8000-000000000001/orders",
  "/eab/00000000-0000-0000-0000-000000000000",
  "/orders/01900002-0000-7000-8000-000000000000",
  "/orders/01900002-0000-7000-8000-000000000000/certificate",
  "/upstream-orders/01900002-0000-7000-8000-000000000000",
  "/audit/1",
  "/jobs/01900005-0000-7000-8000-000000000000",
  "/operators/olga",
  "/operators/olga/sessions"
]

const exported = ["accounts", "eab", "orders", "expiring", "audit"]

const pages = [
  "",
  "certificates",
  "accounts",
  "eab",
  "orders",
  "expiring",
  "upstream-orders",
  "audit",
  "jobs",
  "workers",
  "profiles",
  "authorities",
  "operators",
  "account"
]

interface Ground {
  readonly api: Asking
  readonly panel: AskingPanel
  readonly held: Held
}

/** Does the work of operators, clients and workers while a row is damaged, and returns the requests that failed. */
const battery = Effect.fnUntraced(function*({ api, held: { cookie }, panel }: Ground) {
  const wrong: Array<string> = []
  const wants = (path: string, status: number, text: string) => {
    if (status !== 200) wrong.push(`${path} is ${status}: ${text.slice(0, 200)}`)
  }
  for (const path of [...lists, ...details]) {
    const told = yield* api.ask(`/api${path}`, { cookie })
    wants(path, told.status, told.text)
  }
  for (const list of exported) {
    const told = yield* api.ask(`/api/${list}/export?format=json`, { cookie })
    wants(`${list}/export`, told.status, told.text)
  }
  for (const page of pages) {
    const told = yield* panel.ask(`/ui/${page}`, { cookie })
    wants(`/ui/${page}`, told.status, told.text)
  }
  // A worker does this at startup.
  yield* recover(config)
  yield* crl.initialize
  yield* Effect.scoped(
    Layer.build(workers.presence({ owner: "host:1:b", roles: "worker", version: "1", knows: knownWords.join(" ") }))
  )
  const caller = yield* callerAt(profileOf(config))
  yield* issueTo(caller, ["new.example"])
  const every = yield* handlers(config)
  yield* Effect.scoped(Effect.gen(function*() {
    const { enqueuePeriodic, idle, pass, renew, tend } = yield* Runner.make(
      { ...config.jobs, owner: "host:1:b" },
      every
    )
    yield* enqueuePeriodic()
    yield* pass
    yield* renew
    yield* tend
    yield* Effect.orDie(idle)
  }))
  return wrong
})

const ofDefects = ["request_handler_panicked", "job_run_panicked", "server_loop_failed", "db_statement_failed"] as const

/** Leaves the rows of the callers themselves unchanged. */
const own: { readonly [table: string]: string } = {
  admin_users: "WHERE username = 'olga'",
  admin_sessions: "WHERE token_hash = 'h'"
}

/** The tables with a trigger that prevents changes. */
const appendOnly = new Set(["audit_log", "audit_chain"])

/** Removes the trigger that prevents changes to a table. */
const open = (table: string) =>
  Effect.flatMap(
    Database,
    ({ dialect }) =>
      sql(`DROP TRIGGER IF EXISTS ${table}_is_append_only${dialect === "postgres" ? ` ON ${table}` : ""}`)
  )

const keysOf = (table: Table, dialect: "sqlite" | "postgres") =>
  table.key.map((column, index) => `${column} = ${dialect === "sqlite" ? "?" : `$${index + 1}`}`).join(" AND ")

/** Damages some columns in the first row of a table. */
const spoil = Effect.fnUntraced(function*(
  table: Table,
  columns: ReadonlyArray<string>,
  literal: string,
  where = own[table.name] ?? ""
) {
  const { dialect } = yield* Database
  const [row] = yield* sql(`SELECT ${table.key.join(", ")} FROM ${table.name} ${where} LIMIT 1`)
  if (row === undefined) return yield* Effect.die(`${table.name} is empty`)
  const set = columns.map((column) => `${column} = ${literal}`).join(", ")
  yield* sql(`UPDATE ${table.name} SET ${set} WHERE ${keysOf(table, dialect)}`, table.key.map((column) => row[column]))
})

describe.each(databases)("a row that cannot be read, on $name", (backend) => {
  const { records, test } = useStore<Ground, World | Passwords>(backend, {
    startsAt,
    layer: ({ name, records: written }) =>
      Layer.provideMerge(
        Passwords.layer({ iterations: 2, recoveryIterations: 1 }),
        world({ seed: name, records: written, profiles: profilesIn(freshDirectory()) })
      ),
    first: () =>
      Effect.gen(function*() {
        yield* crl.initialize
        yield* populate
        const api = yield* apiOf(config)
        const held = yield* signedIn(api, "boss", "admin")
        return { api, panel: yield* panelOf(config), held } satisfies Ground
      })
  })

  const nothingStops = (ground: Ground, wanted: string) =>
    Effect.gen(function*() {
      records.length = 0
      const wrong = yield* battery(ground)
      const logged = records.filter(({ level }) => level === "error")
      assert.strictEqual(
        wrong.join("\n"),
        "",
        logged.map(({ event, fields }) => `${event} ${JSON.stringify(fields)}`).join("\n")
      )
      const defects = ofDefects.flatMap((event) => fieldsOf(records, event))
      assert.strictEqual(defects.map((one) => JSON.stringify(one)).join("\n"), "", wanted)
    })

  for (const table of tables) {
    const ints = table.columns.filter(([name, kind]) => kind === "int" && !table.key.includes(name)).map(([name]) =>
      name
    )
    const texts = table.columns.filter(([name]) => jsonColumns.has(`${table.name}.${name}`)).map(([name]) => name)
    const spoiled: ReadonlyArray<readonly [columns: ReadonlyArray<string>, literal: string]> = [
      ...(isFull && backend.dialect === "sqlite" ? ints.map((name) => [name]) : ints.length === 0 ? [] : [ints])
        .flatMap((columns) =>
          ["9223372036854775807", ...isFull ? ["-9223372036854775808"] : []].map((literal) =>
            [columns, literal] as const
          )
        ),
      ...texts.flatMap((name) => ["'{'", "'[{}]'", "'7'"].map((literal) => [[name], literal] as const))
    ]
    for (const [columns, literal] of spoiled) {
      test(`prevents no other work if it is in ${table.name} and has ${columns.join(", ")} = ${literal}`, (ground) =>
        Effect.gen(function*() {
          if (appendOnly.has(table.name)) yield* open(table.name)
          yield* spoil(table, columns, literal)
          yield* nothingStops(ground, `${table.name} ${columns.join()} ${literal}`)
        }))
    }
  }

  test("is reported with the unreadable column on the page that lists it", ({ held: { cookie }, panel }) =>
    Effect.gen(function*() {
      const jobs = tables.find(({ name }) => name === "jobs") ?? assert.fail("no table of jobs")
      const shown = yield* panel.ask("/ui/jobs", { cookie })
      assert.notInclude(shown.text, "cannot be read")
      yield* spoil(jobs, ["deadline"], "9223372036854775807", "WHERE status = 'done'")
      const told = yield* panel.ask("/ui/jobs", { cookie })
      assert.match(told.text, /1 row of the database cannot be read as it is/)
      assert.include(told.text, "id 01900005-0000-7000-8000-000000000002")
      assert.include(told.text, "deadline: holds")
      assert.include(told.text, `/ui/jobs/01900005-0000-7000-8000-000000000002`)
      const [{ row, statement } = {}] = fieldsOf(records, "db_row_unreadable")
      assert.deepStrictEqual([statement, row], [
        "job_page",
        "id 01900005-0000-7000-8000-000000000002, kind signer_issue"
      ])
    }))

  test("is logged once a minute, however often it is read", ({ api, held: { cookie } }) =>
    Effect.gen(function*() {
      const jobs = tables.find(({ name }) => name === "jobs") ?? assert.fail("no table of jobs")
      yield* spoil(jobs, ["deadline"], "9223372036854775807", "WHERE status = 'running'")
      const found = () => fieldsOf(records, "db_row_unreadable").length
      for (let at = 0; at < 5; at++) yield* api.ask("/api/jobs", { cookie })
      assert.strictEqual(found(), 1)
      yield* TestClock.adjust("1 minute")
      yield* api.ask("/api/jobs", { cookie })
      assert.strictEqual(found(), 2)
    }))
})

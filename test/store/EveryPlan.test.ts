import { it } from "@effect/vitest"
import { Effect } from "effect"
import { readdirSync } from "node:fs"
import { assert, describe } from "vitest"
import { Database } from "../../src/engine/sql/Database.ts"
import { makers } from "../../src/engine/sql/Filters.ts"
import type { Statement } from "../../src/engine/sql/Statement.ts"
import { declared } from "../../src/engine/sql/Statement.ts"
import { databases, emptied, useDatabase } from "../support/Databases.ts"
import { isFull } from "../support/Full.ts"
import { count, migrated, openDriver, sql } from "../support/Graph.ts"
import { fillTables, gather, grow } from "../support/Grown.ts"

/*
 * Checks how the engines execute every statement in a database whose tables are large and unevenly filled. A step of a
 * plan is narrow if a column in its condition selects one row, or the few rows that belong together. Every other step
 * is wide, and must be listed here with the reason why it reads a limited number of rows.
 */

for (const room of ["engine/sql", "engine/queue", "domain/words", "store"]) {
  const folder = new URL(`../../src/${room}/`, import.meta.url)
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    // Files that are separate programs declare no statements.
    if (file.endsWith(".ts") && !/^sqlite[RC]/.test(file)) await import(new URL(file, folder).href)
  }
}
for (const make of makers) make()
const statements: ReadonlyArray<Pick<Statement<never, never>, "name" | "compiled" | "only">> = [...declared]

/** Columns in which few rows share a value. */
const narrow = new Set(
  `id rowid order_id authz_id kid eab_kid external_kid value token owner serial cert_serial pubkey cert_pubkey name dedup_key
   upstream_order_url replaces version key token_hash user_id request_id sequence`.split(/\s+/)
)

/** Tables that stay small: a row for each process, CA, profile, migration or operator. */
const small = new Set([
  "workers",
  "crls",
  "schema_migrations",
  "sqlite_master",
  "pg_class",
  "admin_users",
  "audit_chain_checks",
  "audit_receivers",
  "expiry_digests",
  "campaigns"
])

/**
 * Statements with wide steps. `bound` says what limits the rows that they read, and `steps` matches the wide steps that
 * are allowed on SQLite. On PostgreSQL, any wide step of these statements is allowed, because PostgreSQL chooses plans
 * by the number of rows, and this database has too few rows.
 */
const wide: ReadonlyArray<{ readonly bound: string; readonly names: RegExp; readonly steps?: RegExp }> = [
  {
    bound: "only the newest orders of an hour are read, at most 20,000",
    names: /^accounts_without_certificate$/,
    steps: /^SEARCH orders USING INDEX orders_created_at/
  },
  {
    bound: "the windows of codes that were entered lately, at most a few for each operator",
    names: /^login_attempt_codes$/,
    steps: /PRIMARY KEY \(key>\? AND key<\?\)/
  },
  {
    bound: "one batch, from the end of an index",
    names:
      /^(nonce|audit|job|http01_token|order|session|login_attempt|login_failure|expiry_reminder|reminded_address)_sweep$|^revocation_prune$/,
    steps: /created_at|updated_at|expires_at|not_after|window_started_at|last_failed_at|sent_at/
  },
  { bound: "one row, from the end of its index", names: /^audit_last_row$/, steps: /^SEARCH audit_log$/ },
  {
    bound: "what was revoked within an hour, beside the service and for two seconds",
    names: /^audit_revoked$/,
    steps: /audit_log_event_created_at \(event=\? AND created_at>\?\)/
  },
  {
    bound: "one link or row, from one end of an index",
    names: /^chain_(head|first|signed|newest_row|next_row)$/,
    steps: /^SCAN audit_chain$|audit_chain_signed|audit_log_created_at|PRIMARY KEY \(rowid>\?\)/
  },
  {
    bound: "one page, in the order of the primary key",
    names: /^chain_(page|rows)$|^audit_pushed_rows$/,
    steps: /PRIMARY KEY \(rowid>\? AND rowid<\?\)/
  },
  {
    bound: "the links whose rows a sweep has just deleted",
    names: /^chain_(anchor|prune)$/,
    steps: /^SCAN audit_chain$|PRIMARY KEY \(rowid<\?\)/
  },
  {
    bound: "the deletions that the trail records, a page at a time, beside the service",
    names: /^chain_pruned_rows$/,
    steps: /audit_log_event_created_at \(event=\? AND created_at>\?\)/
  },
  { bound: "what operators changed within 15 minutes", names: /^operator_changes$/ },
  { bound: "one entry of an index", names: /^audit_has_event$/, steps: /audit_log_event_created_at/ },
  { bound: "one entry of an index", names: /^order_of_kind$/, steps: /orders_kind/ },
  {
    bound: "the rows of one event in one second, one entry of an index, or what a missing account has left",
    names: /^acknowledged_(accounts|orders|order_rows|rows)_missing$/,
    steps: /audit_log_event_created_at \(event=\? AND created_at[=>]|audit_log_account_id/
  },
  { bound: "one batch of those that are not known", names: /^order_unknown_end$/, steps: /cert_not_after=\?/ },
  {
    bound: "one page of an account, from the end of an index",
    names: /^order_list_of_account$/,
    steps: /orders_account_id_id \(account_id=\? AND id<\?\)/
  },
  {
    bound: "one page, from the end of an index",
    names:
      /^(revocation_page|order_expired_page|order_purge_page|job_claim|job_claim_among|job_due_rows|upstream_renewal_due)$/,
    steps: /serial|created_at|jobs_due|not_after>|renewal_due>/
  },
  {
    bound: "the newest 100,000 accounts, from the end of an index, for the search box",
    names: /^account_find_by_(contact|address)$/,
    steps: /^SCAN a$|SCAN accounts USING INDEX sqlite_autoindex_accounts_1$/
  },
  {
    bound: "what one account has ordered within a week, from an index",
    names: /^account_activity_(count|newest)$/,
    steps: /orders_account_id_id \(account_id=\? AND id>\?\)/
  },
  {
    bound: "five orders of a profile, from an index that has their order",
    names: /^order_by_serial_prefix$/,
    steps: /orders_profile_cert_serial \(profile=\? AND cert_serial>\? AND cert_serial<\?\)/
  },
  {
    bound: "those under way",
    names:
      /^(account_relayed|challenge_without_job|order_stuck_processing|challenge_claim|challenge_in_flight|order_processing_wait|job_reclaim|job_running|job_undelivered)$/,
    steps: /challenges_processing|status ?=|jobs_live \(kind=\?\)|orders_account_id_pending/
  },
  {
    bound: "one row for each of few values",
    names: /^(order_profiles|revocation_issuers|job_unknown_kinds|job_heads|job_groups|expiring_authorities)$/
  },
  {
    bound: "one page of a walk over all orders, for a compromised CA or a campaign",
    names: /^(certificates_live_page|campaign_walk)$/,
    steps: /id>/
  },
  {
    bound: "one page of what is left of a campaign, or one entry of it, in the order of an index",
    names: /^campaign_(open_page|revocable_page|silent_page|finish)$/,
    steps: /campaign_certificates_open \(campaign_id=\?/
  },
  {
    bound: "what is left of a campaign, from an index alone, beside the service",
    names: /^campaign_remaining$/,
    steps: /COVERING INDEX campaign_certificates_open/
  },
  { bound: "the last samples of a campaign", names: /^campaign_samples$/, steps: /campaign_id=\?/ },
  {
    bound: "rows by their ids, where PostgreSQL knows how few there are",
    names: /^campaign_(match|members|leave|mailed|asked_first|asked_again)$/,
    steps: /never/
  },
  { bound: "those of a kind that comes round for each profile", names: /^job_look_again$/, steps: /kind=\?/ },
  { bound: "what a clock that was ahead wrote", names: /^job_ahead$/, steps: /updated_at>|jobs_due \(run_at>/ },
  {
    bound: "rows by their ids, where PostgreSQL knows how few there are",
    names:
      /^(job_(claim_these|renew|still_held|move|bring_forward)|order_(purge|listed|set_end)|expiring_(find|covering)|account_labels|expiry_reminder_take)$/,
    steps: /never/
  },
  {
    bound: "one jump in an index for each profile",
    names: /^(certificates_of_serials|order_names_(newest|count))$/,
    steps: /orders_profile_created_at|order_identifiers_profile_name_order( \(profile>\?\))?$/
  },
  { bound: "a row for each process", names: /^worker_sweep$/, steps: /never/ },
  {
    bound: "from the newest on, as many as the limit says",
    names: /^(limit_(accounts|orders|names|pending_authorizations)|order_names_ending)$/,
    steps: /accounts_profile_created_network|orders_account_id|order_identifiers_name_rev/
  },
  {
    bound: "the orders of the accounts of one credential within a day, where that is limited",
    names: /^limit_credential(_count)?$/,
    steps: /orders_account_id_id \(account_id=\? AND id>\?\)/
  },
  {
    bound: "the orders of one account in a window, where that is limited",
    names: /^limit_replacing$/,
    steps: /orders_account_id/
  },
  {
    bound: "those of one end of a name, which is walked where there are many, beside the service",
    names: /^order_names_(newest|count)$/,
    steps: /order_identifiers_name_rev/
  },
  {
    bound: "a stretch of a walk that is bounded, beside the service",
    names: /^order_walk_(matches|count|end|end_of_(account|time))$/,
    steps: /PRIMARY KEY \(order_id|orders_account_id_id \(account_id=\? AND id|orders_created_at \(created_at/
  },
  {
    bound: "what ended long ago, for a command",
    names: /^order_purge_(preview|left)$/,
    steps: /cert_not_after[<>=]/
  },
  {
    bound: "the newest 2000 failed orders or 1000 issuances, from the end of an index, beside the service",
    names: /^(order_failed_newest|issuance_newest)$/,
    steps:
      /orders_status_created_at \(status=\? AND created_at>\?\)|audit_log_event_created_at \(event=\? AND created_at>\?\)/
  },
  {
    bound: "100,000 certificates of each of thirteen weeks, from an index alone, beside the service",
    names: /^certificate_end_counts$/,
    steps: /orders_profile_cert_not_after|orders_profile_created_at/
  },
  {
    bound: "what ends soon, beside the service",
    names: /^expiring_(count|places)$/,
    steps: /orders_profile_cert_not_after|orders_profile_created_at/
  },
  {
    bound: "one page of each profile in the order of the ends, or a count from an index, beside the service",
    names: /^certificate_(page|count)$/,
    steps: /orders_profile_(cert|revoked)_not_after|orders_profile_created_at|orders_account_revoked/
  },
  { bound: "a page of those, beside the service", names: /^expiring_replaced$/, steps: /orders_profile_replaces/ },
  {
    bound: "beside the service",
    names:
      /^((order|account)_search(_count|_behind)?|audit_(search(_count|_behind)?|trend)|job_(page|count|errors|alike)|upstream_order_(page|count)|eab_(list|count|behind)|nonce_count|chain_span|revocation_count|queue_\w+|orphan_count)$/
  },
  {
    bound: "sessions and tokens of operators, of whom there are few, for a command or an admin",
    names: /^(session_(list|count|end)_every|token_(list|count))$/
  },
  {
    bound: "what one account or those of one credential own",
    names: /^(eab_accounts(_lock)?|account_(orders_lock|owned|live_certificates|deactivate_all|delete_all))$/
  }
]

const isBounded = (dialect: string, statement: string, step: string): boolean =>
  wide.some(({ names, steps }) =>
    names.test(statement) && (dialect === "postgres" || steps === undefined || steps.test(step))
  )

/**
 * Returns whether a statement may have any step on both engines. Its plans are made only once, to see that the engine
 * accepts it, because there are thousands of such statements.
 */
const isFree = ({ name }: { readonly name: string }): boolean =>
  wide.some(({ names, steps }) => steps === undefined && names.test(name))

/** Returns the wide steps of a plan on SQLite, in which tables are named by their aliases. */
const wideOnSqlite = (lines: ReadonlyArray<string>, text: string): ReadonlyArray<string> => {
  const tables = new Map<string, string>()
  for (
    const [, table = "", alias] of text.matchAll(
      /\b(?:FROM|JOIN|UPDATE|INTO) (\w+)(?: (?:AS )?(?!WHERE|ORDER|CROSS|JOIN|SET|ON|INDEXED|LIMIT|GROUP|VALUES)(\w+))?/g
    )
  ) {
    tables.set(alias ?? table, table)
    tables.set(table, table)
  }
  return lines.filter((line) => {
    const [, step, name = ""] = /^(SCAN|SEARCH) (\w+)/.exec(line) ?? []
    const table = tables.get(name)
    if (step === undefined || table === undefined || small.has(table) || !isTable(table)) return false
    const columns = [...line.matchAll(/(\w+)=\?/g)].map(([, column = ""]) => column)
    return !columns.some((column) => narrow.has(column))
  })
}

const isTable = (name: string): boolean =>
  /^(accounts|orders|order_identifiers|authorizations|challenges|nonces|upstream_orders|revocations|http01_tokens|jobs|audit_log|audit_chain|campaign_certificates|campaign_samples|eab_keys|admin_sessions|admin_recovery_codes|login_attempts|login_failures|api_tokens)$/
    .test(name)

interface Node {
  readonly "Node Type": string
  readonly "Relation Name"?: string
  readonly "Index Name"?: string
  readonly "Index Cond"?: string
  readonly Plans?: ReadonlyArray<Node>
}

/** Returns the wide steps of a plan on PostgreSQL. */
const wideOnPostgres = (node: Node, above = ""): ReadonlyArray<string> => {
  const table = node["Relation Name"] ?? above
  const below = (node.Plans ?? []).flatMap((one) => wideOnPostgres(one, table))
  const type = node["Node Type"]
  const condition = node["Index Cond"] ?? ""
  const isScan = /^(Seq Scan|Index Scan|Index Only Scan|Bitmap Index Scan)$/.test(type)
  if (!isScan || small.has(table) || (type !== "Bitmap Index Scan" && !isTable(table))) return below
  // Matches a condition with one value, or with a range that begins and ends with the same value.
  const columns = [...condition.matchAll(/\b(\w+)\)? = |(\b(?:\w+\()?(\w+)\)?) >= (.+?)\) AND \(\2 <= \4\)/g)].map(
    ([, one, , between]) => one ?? between ?? ""
  )
  return columns.some((column) => narrow.has(column))
    ? below
    : [...below, `${type} ${table} ${node["Index Name"] ?? ""} ${condition}`.trim()]
}

/**
 * Returns the plan that PostgreSQL makes for a statement without knowing the values. The service's connections use such
 * plans. Servers before PostgreSQL 16 have no `EXPLAIN (GENERIC_PLAN)`.
 */
const explained = (text: string, parameters: number, format: "JSON" | "TEXT") =>
  Effect.gen(function*() {
    yield* sql("SET plan_cache_mode = force_generic_plan")
    yield* sql(`PREPARE explained AS ${text}`)
    const nulls = parameters === 0 ? "" : `(${Array.from({ length: parameters }, () => "NULL").join(", ")})`
    const rows = yield* sql(`EXPLAIN (FORMAT ${format}) EXECUTE explained${nulls}`)
    yield* sql("DEALLOCATE explained")
    return rows
  })

describe.each(databases)("every plan on $name", (backend) => {
  const database = useDatabase(backend)

  const plansOf = ({ compiled }: (typeof statements)[number]) => {
    const { order, text } = compiled[backend.dialect]
    return backend.dialect === "sqlite"
      ? Effect.map(
        Database.use((driver) =>
          driver.single({ text: `EXPLAIN QUERY PLAN ${text}`, order, reads: true }, order.map(() => null))
        ),
        (rows) => wideOnSqlite(rows.map((row) => String((row as { readonly detail: unknown }).detail)), text)
      )
      : Effect.map(explained(text, order.length, "JSON"), ([row]) => {
        const plans = row?.["QUERY PLAN"] as ReadonlyArray<{ readonly Plan: Node }>
        return plans.flatMap(({ Plan }) => wideOnPostgres(Plan))
      })
  }

  /** The steps that read an unlimited number of rows, each with its statement. */
  const unboundedAmong = (judged: typeof statements) =>
    Effect.forEach(
      judged.filter(({ name, only = backend.dialect }) => !name.startsWith("test_") && only === backend.dialect),
      (one) =>
        Effect.map(plansOf(one), (steps) =>
          steps.flatMap((step) => isBounded(backend.dialect, one.name, step) ? [] : [`${one.name}: ${step}`]))
    ).pipe(Effect.map((found) => [...new Set(found.flat())]))

  const unbounded = unboundedAmong(statements.filter((one) => !isFree(one)))

  it.effect("reads a limited number of rows of growing tables, with and without statistics", () =>
    Effect.scoped(
      Effect.gen(function*() {
        assert.isAbove(statements.length, 800)
        yield* migrated
        if (backend.dialect === "postgres") {
          assert.strictEqual(
            yield* count("SELECT count(*) FROM pg_class WHERE relname = 'orders' AND reltuples <= 0"),
            1
          )
        }
        if (isFull) assert.deepStrictEqual(yield* unboundedAmong(statements), [], "empty, without statistics")
        yield* fillTables(10_000)
        assert.deepStrictEqual(yield* unbounded, [], "large, without statistics")
        yield* gather
        assert.deepStrictEqual(yield* unbounded, [], "large, with statistics")
        // SQLite gathers no statistics by itself. Outside the gate, these plans of PostgreSQL are left out.
        if (backend.dialect === "sqlite" || !isFull) return
        yield* emptied(backend.dialect)
        yield* fillTables(50)
        yield* gather
        assert.deepStrictEqual(yield* unbounded, [], "few rows, with statistics")
      }).pipe(Effect.provideServiceEffect(
        Database,
        Effect.flatMap(Effect.promise(backend.freshUrl), (url) => openDriver(url, 1))
      ))
    ))

  /**
   * Returns the steps of the statements with this name and these conditions, on PostgreSQL as `EXPLAIN` prints them.
   */
  const stepsOf = (name: string, conditions: RegExp) =>
    Effect.map(
      Effect.forEach(
        statements.filter((one) => one.name === name && conditions.test(one.compiled[backend.dialect].text)),
        ({ compiled }) => {
          const { order, text } = compiled[backend.dialect]
          return backend.dialect === "sqlite"
            ? database.driver().single(
              { text: `EXPLAIN QUERY PLAN ${text}`, order, reads: true },
              order.map(() => null)
            )
            : explained(text, order.length, "TEXT")
        }
      ),
      (plans) => plans.map((rows) => rows.map((row) => Object.values(row as object).map(String).join(" ")).join("\n"))
    )

  it.effect("finds the orders of an account, newest first, without sorting all of them", () =>
    database.use(Effect.gen(function*() {
      yield* grow
      // PostgreSQL would sort these few rows, because sorting them is quick. The test checks that it need not sort.
      if (backend.dialect === "postgres") yield* sql("SET enable_sort = off")
      const alone =
        /WHERE o\.account_id (?:= \+\?|>= \$1 AND o\.account_id <= \$1)(?: AND \+?o\.status = 'valid')? (?:ORDER|AND o\.id < )/
      for (const name of ["order_search", "order_search_behind"]) {
        const plans = yield* stepsOf(name, alone)
        assert.isNotEmpty(plans, name)
        for (const plan of plans) assert.notMatch(plan, /TEMP B-TREE FOR|Sort {2}|SCAN/, name)
      }
    })))

  it.effect("uses an index to find values that few rows have", () =>
    database.use(Effect.gen(function*() {
      if (backend.dialect === "postgres") yield* sql("SET enable_seqscan = off")
      for (
        const [name, conditions, index] of [
          ["account_live_certificates", /./, "orders_account_live"],
          ["audit_of_request", /./, "audit_log_request_id"],
          ["job_page", /j\.dedup_key (?:IN|= ANY)/, "jobs_kind_dedup_key"],
          ["job_page", / WHERE 1 = 1 /, backend.dialect === "postgres" ? "jobs_pkey" : "sqlite_autoindex_jobs_1"],
          ["job_count", /j\.dedup_key (?:IN|= ANY)/, "jobs_kind_dedup_key"]
        ] as const
      ) {
        const plans = yield* stepsOf(name, conditions)
        assert.isNotEmpty(plans, name)
        for (const plan of plans) assert.include(plan, index)
      }
    })))

  it.effect("lists rows by the index of a condition, even if many rows meet the condition and the newest rows do not", () =>
    database.use(Effect.gen(function*() {
      if (backend.dialect === "postgres") {
        yield* grow
        yield* sql(
          `UPDATE orders SET status = 'invalid', certificate = NULL
           WHERE created_at < (SELECT (min(created_at) + max(created_at)) / 2 FROM orders)`
        )
        yield* sql("ANALYZE orders")
        // Jumps within the table cost most with these settings: the newest rows are next to each other, but the rows
        // that an index selects are not.
        yield* sql("SET enable_seqscan = off; SET enable_sort = off; SET random_page_cost = 1000")
      } else {
        yield* sql("ANALYZE")
        yield* sql("DELETE FROM sqlite_stat1")
        yield* sql("ANALYZE sqlite_schema")
      }
      const led = (column: string, value: string) =>
        backend.dialect === "postgres" ? `${column} >= ${value} AND ${column} <= ${value}` : `${column} = ${value}`
      const parameter = backend.dialect === "postgres" ? "\\$1" : "\\+?\\?"
      for (
        const [table, condition, index] of [
          ...backend.dialect === "postgres"
            ? [
              ["order", "o\\.status = 'invalid' AND o\\.certificate IS NULL", "orders_unissued"],
              [
                "order",
                `${led("o.profile", parameter)} AND o\\.status = 'invalid' AND o\\.certificate IS NULL`,
                "orders_profile_unissued"
              ],
              ["order", "o\\.status = 'valid'", "orders_created_at"]
            ] as const
            : [
              ["order", "o\\.status = 'invalid'", "orders_status_created_at"],
              ["order", "o\\.status = 'valid'", "orders_status_created_at"]
            ] as const,
          ["order", "o\\.revoked_at IS NOT NULL", "orders_revoked"],
          ["order", `${led("o.profile", parameter)} AND o\\.revoked_at IS NOT NULL`, "orders_profile_revoked"],
          ["order", `${led("o.account_id", parameter)} AND o\\.revoked_at IS NOT NULL`, "orders_account_revoked"],
          ["order", `${led("o.kind", parameter)} AND o\\.kind IS NOT NULL`, "orders_kind"],
          [
            "order",
            `\\+?o\\.profile = ${parameter} AND ${
              led("o.kind", backend.dialect === "postgres" ? "\\$2" : parameter)
            } AND o\\.kind IS NOT NULL`,
            "orders_kind"
          ],
          ["order", led("o.profile", parameter), "orders_profile_created_at"],
          ["order", led("o.account_id", parameter), "orders_account_id_id"],
          ["account", led("a.profile", parameter), "accounts_profile_created_at"],
          ["audit", led("l.event", parameter), "audit_log_event_created_at"],
          ["audit", led("l.profile", parameter), "audit_log_profile_created_at"],
          ["audit", `l.actor_kind <> 'acme' AND ${led("l.actor_kind", parameter)}`, "audit_log_actors"]
        ] as const
      ) {
        const plans = yield* stepsOf(`${table}_search`, new RegExp(`WHERE ${condition}\\s+ORDER`))
        assert.isNotEmpty(plans, condition)
        for (const plan of plans) assert.include(plan, index)
      }
    })))

  it.effect("finds orders that are not valid without reading the valid ones", () =>
    database.use(Effect.gen(function*() {
      yield* grow
      // The connection may have the settings of another test.
      if (backend.dialect === "postgres") yield* sql("RESET ALL; SET enable_seqscan = off")
      const index = backend.dialect === "postgres"
        ? /orders_(account_|profile_)?unissued/
        : /orders_status_created_at|orders_account_id/
      for (
        const name of [
          "order_expired_page",
          "order_sweep",
          "order_stuck_processing",
          ...backend.dialect === "postgres" ? ["order_processing_wait"] : [],
          "limit_pending_authorizations",
          "account_orders_lock",
          "account_relayed"
        ]
      ) {
        const plans = yield* stepsOf(name, /./)
        assert.isNotEmpty(plans, name)
        for (const plan of plans) assert.match(plan, index, name)
      }
    })))

  it.effect("finds by name, newest first, the orders that may have replaced a certificate", () =>
    database.use(Effect.gen(function*() {
      yield* grow
      if (backend.dialect === "postgres") yield* sql("SET enable_seqscan = off; SET enable_sort = off")
      const plans = yield* stepsOf("expiring_places", /./)
      assert.isNotEmpty(plans)
      for (const plan of plans) {
        assert.include(
          plan,
          backend.dialect === "postgres"
            ? "Index Only Scan Backward using order_identifiers_profile_name_order"
            : "SEARCH n USING COVERING INDEX order_identifiers_profile_name_order (profile=? AND name=?)"
        )
      }
    })))
})

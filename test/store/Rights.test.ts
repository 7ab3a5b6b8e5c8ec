import { it } from "@effect/vitest"
import { Effect } from "effect"
import type { Scope } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "pg"
import { afterAll, assert, beforeAll, describe } from "vitest"
import { tellMissingRights } from "../../src/app/Schema.ts"
import type { Role } from "../../src/domain/Role.ts"
import { everyRole } from "../../src/domain/Role.ts"
import { text } from "../../src/engine/sql/Column.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import * as Migrations from "../../src/engine/sql/Migrations.ts"
import { all } from "../../src/engine/sql/Query.ts"
import { statement } from "../../src/engine/sql/Statement.ts"
import type { Record } from "../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../src/engine/telemetry/EventLog.ts"
import * as rights from "../../src/store/Rights.ts"
import { repository } from "../support/Documents.ts"
import { fieldsOf, migrated, migrationsOf, openDriver } from "../support/Graph.ts"
import type { PostgresCluster } from "../support/Postgres.ts"
import { startPostgres } from "../support/Postgres.ts"
import { psql } from "../support/Psql.ts"

/*
 * Runs docs/recipes/postgres-roles.sql with psql on a separate server, because roles belong to a whole server. The
 * owner of the tables is not a superuser.
 */

const script = readFileSync(join(repository, "docs/recipes/postgres-roles.sql"), "utf8")

const users = { acme: "acme_front", admin: "acme_admin", worker: "acme_worker" } as const

let server: PostgresCluster

beforeAll(async () => {
  server = await startPostgres()
  const admin = new Client({ connectionString: server.adminUrl })
  await admin.connect()
  await admin.query("CREATE ROLE owner LOGIN PASSWORD 'secret' CREATEROLE")
  await admin.query("CREATE ROLE weak LOGIN PASSWORD 'secret'")
  await admin.end()
})
afterAll(() => server.stop())

const connect = (url: string): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ connectionString: url })
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )

const query = (client: Client, text: string) => Effect.promise(() => client.query(text))

const as = (url: string, user: string): string => {
  const own = new URL(url)
  own.username = user
  own.password = "secret"
  return own.href
}

/** Creates and migrates a database that belongs to this role. */
const databaseOf = Effect.fnUntraced(function*(owner: string) {
  const url = yield* Effect.promise(() => server.createDatabase())
  const admin = yield* connect(url)
  yield* query(admin, `ALTER DATABASE ${new URL(url).pathname.slice(1)} OWNER TO ${owner}`)
  // docs/recipes/postgres-database.sql does the same: before PostgreSQL 15 the schema belongs to the superuser.
  yield* query(admin, `ALTER SCHEMA public OWNER TO ${owner}`)
  const driver = yield* openDriver(as(url, owner), 1)
  yield* Effect.provideService(migrated, Database, driver)
  return { url, admin }
})

const run = (url: string, file = script) =>
  Effect.promise(async () => {
    const client = new Client({ connectionString: url })
    await client.connect()
    return psql(client, file)
  })

const scripted = Effect.fnUntraced(function*() {
  const database = yield* databaseOf("owner")
  assert.deepStrictEqual(yield* run(as(database.url, "owner")), { code: 0, error: undefined })
  for (const user of Object.values(users)) yield* query(database.admin, `ALTER ROLE ${user} PASSWORD 'secret'`)
  return database
})

/** Returns the rights of a role to tables and columns, in the form in which the service names rights. */
const granted = (admin: Client, user: string) =>
  Effect.map(
    query(
      admin,
      `SELECT privilege_type || ' on ' || table_name AS "right" FROM information_schema.role_table_grants
       WHERE grantee = '${user}' AND table_schema = 'public'
       UNION SELECT privilege_type || ' on ' || table_name || '.' || column_name
       FROM information_schema.role_column_grants c WHERE grantee = '${user}' AND table_schema = 'public'
         AND NOT EXISTS (SELECT FROM information_schema.role_table_grants t WHERE t.grantee = c.grantee
           AND t.table_name = c.table_name AND t.privilege_type = c.privilege_type)`
    ),
    ({ rows }: { readonly rows: ReadonlyArray<{ readonly right: string }> }) => rows.map(({ right }) => right)
  )

const partsOf = (right: string) => {
  const [privilege = "", of = ""] = right.split(" on ")
  const [object = "", part] = of.split(".")
  return { privilege, object, part }
}

const grantOf = (right: string): string => {
  const { object, part, privilege } = partsOf(right)
  return `${part === undefined ? privilege : `${privilege} (${part})`} ON ${object}`
}

/** Returns a statement that needs this right, and no other right that the user lacks. */
const needing = (right: string, column: string) => {
  const { object, part, privilege } = partsOf(right)
  return statement({
    name: "test_right",
    params: { none: text() },
    row: {},
    sql: () => {
      switch (privilege) {
        case "SELECT":
          return `SELECT ${part ?? column} AS x FROM ${object} WHERE :none = ''`
        case "INSERT":
          return `INSERT INTO ${object} (${column}) SELECT NULL WHERE :none = ''`
        case "UPDATE":
          return `UPDATE ${object} SET ${column} = NULL WHERE :none = ''`
        default:
          return `DELETE FROM ${object} WHERE :none = ''`
      }
    }
  })
}

describe("the script that creates the roles", () => {
  it.live("grants each role exactly the rights that the service says it needs", () =>
    Effect.scoped(Effect.gen(function*() {
      const { admin } = yield* scripted()
      for (const role of everyRole) {
        assert.sameMembers([...yield* granted(admin, users[role])], [...rights.needed(new Set([role]))], role)
      }
    })))

  it.live("revokes no right from running processes, however often the script is run", () =>
    Effect.scoped(Effect.gen(function*() {
      const { admin, url } = yield* scripted()
      const load = Effect.fnUntraced(function*(role: Role) {
        const client = yield* connect(as(url, users[role]))
        const tables = (yield* granted(admin, users[role])).filter((right) => /^SELECT on \w+$/.test(right))
        let done = 0
        const loop = Effect.forever(
          Effect.forEach(
            tables,
            (right) => Effect.map(query(client, `SELECT 1 FROM ${partsOf(right).object} LIMIT 1`), () => done++)
          )
        )
        return { loop, done: () => done }
      })
      const loads = yield* Effect.forEach(everyRole, load)
      const runs = Effect.gen(function*() {
        const enough = loads.map(({ done }) => done() + 300)
        for (let ran = 0; ran < 20 || loads.some(({ done }, at) => done() < (enough[at] ?? 0)); ran++) {
          assert.deepStrictEqual(yield* run(as(url, "owner")), { code: 0, error: undefined })
        }
      })
      // The first failed statement ends the runs.
      yield* Effect.raceFirst(Effect.all(loads.map(({ loop }) => loop), { concurrency: "unbounded" }), runs)
    })))

  it.live("changes nothing if it may not create a role, or if the tables belong to another role", () =>
    Effect.scoped(Effect.gen(function*() {
      const { admin, url } = yield* scripted()
      const acls = Effect.map(
        query(
          admin,
          "SELECT relname, relacl::text FROM pg_class WHERE relnamespace = 'public'::regnamespace UNION ALL SELECT nspname, nspacl::text FROM pg_namespace ORDER BY 1"
        ),
        ({ rows }) => rows as ReadonlyArray<unknown>
      )
      // The owner of this database may not create roles, and one of the three roles does not exist yet.
      const weak = yield* databaseOf("weak")
      const renamed = script.replaceAll("acme_worker", "acme_later")
      assert.notStrictEqual(renamed, script)
      const before = yield* acls
      assert.deepStrictEqual(yield* run(as(weak.url, "weak"), renamed), {
        code: 3,
        error: "permission denied to create role"
      })
      const { rows: acl } = yield* query(weak.admin, "SELECT relname FROM pg_class WHERE relacl::text ~ 'acme_front'")
      assert.deepStrictEqual(acl, [], "nothing was granted to the two that are there")
      const refused = yield* run(as(url, "weak"))
      assert.strictEqual(refused.code, 3)
      assert.match(refused.error ?? "", /^nothing was changed: table \w+ belongs to owner, and weak is not its owner$/)
      assert.deepStrictEqual(yield* acls, before)
    })))
})

describe.each(everyRole)("the role %s without one of its rights", (role) => {
  it.live("is reported when the process starts, and again when a statement needs the right", () => {
    const records: Array<Record> = []
    return Effect.scoped(Effect.gen(function*() {
      const { admin, url } = yield* scripted()
      const driver = yield* openDriver(as(url, users[role]))
      const roles = new Set([role])
      yield* Effect.gen(function*() {
        yield* tellMissingRights(roles)
        assert.deepStrictEqual(records, [])
        for (const right of rights.needed(roles)) {
          const { object } = partsOf(right)
          records.length = 0
          yield* query(admin, `REVOKE ${grantOf(right)} FROM ${users[role]}`)
          yield* tellMissingRights(roles)
          assert.deepStrictEqual(fieldsOf(records, "db_rights_missing"), [{ roles: role, rights: right }])
          const { rows: [first] } = yield* query(
            admin,
            `SELECT attname AS name FROM pg_attribute
             WHERE attrelid = '${object}'::regclass AND attnum > 0 AND attidentity = '' ORDER BY attnum LIMIT 1`
          )
          const failed = yield* Effect.flip(all(needing(right, String(first.name)), { none: "" }))
          const words = new RegExp(
            `^42501 permission denied for table ${object}; the user of database.url lacks a right on that: run docs/recipes/postgres-roles.sql`
          )
          assert.match(failed.detail, words, right)
          assert.match(String(fieldsOf(records, "db_statement_failed")[0]?.["error"]), words)
          yield* query(admin, `GRANT ${grantOf(right)} TO ${users[role]}`)
        }
        // Without either of these two rights, a user cannot check the schema.
        const migrations = yield* migrationsOf("postgres")
        yield* query(admin, `REVOKE SELECT ON schema_migrations FROM ${users[role]}`)
        assert.include(
          (yield* Effect.flip(Migrations.check(migrations))).detail,
          "permission denied for table schema_migrations; the user of database.url lacks a right"
        )
        yield* query(admin, `REVOKE USAGE ON SCHEMA public FROM PUBLIC, ${users[role]}`)
        const unusable = yield* openDriver(as(url, users[role]), 1)
        assert.include(
          (yield* Effect.flip(Effect.provideService(Migrations.check(migrations), Database, unusable))).detail,
          "this user may use no schema of the database (GRANT USAGE ON SCHEMA public)"
        )
      }).pipe(Effect.provideService(Database, driver), Effect.provide(layerMemory(records)))
    }))
  })
})

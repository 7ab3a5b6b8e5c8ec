import * as Effect from "effect/Effect"
import type { Role } from "../domain/Role.ts"
import { everyRole } from "../domain/Role.ts"
import type { Connection, Row } from "../engine/sql/Driver.ts"
import type { SqlError } from "../engine/sql/SqlError.ts"
import { needed, partsOfRight } from "./Rights.ts"

/*
 * The statements that make a PostgreSQL database and its roles. They do what `docs/recipes/postgres-database.sql` and
 * `docs/recipes/postgres-roles.sql` do, for any names. An administrator runs them, so they are not the statements of a
 * pool.
 */

/** The names of a database, of the role that owns it, and of the role of each process. */
export interface DatabaseNames {
  readonly database: string
  readonly owner: string
  readonly users: { readonly [R in Role]: string }
}

/** Returns the names of a database and its roles. The roles of the processes begin with the name of the owner. */
export const databaseNames = (database: string, owner: string): DatabaseNames => ({
  database,
  owner,
  users: { acme: `${owner}_front`, admin: `${owner}_admin`, worker: `${owner}_worker` }
})

/** Returns the roles, the owner first. */
export const rolesOf = ({ owner, users }: DatabaseNames): ReadonlyArray<string> => [
  owner,
  ...everyRole.map((role) => users[role])
]

const quoted = (name: string): string => `"${name.replaceAll("\"", "\"\"")}"`
const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`
const list = (names: ReadonlyArray<string>): string => names.map(quoted).join(", ")

/** Returns the statement that makes a role. `verifier` is what the server stores instead of a password. */
export const createRole = (name: string, verifier?: string): string =>
  `CREATE ROLE ${quoted(name)} LOGIN${verifier === undefined ? "" : ` PASSWORD ${literal(verifier)}`}`

/** Returns the statement that makes the database. It cannot run in a transaction. */
export const createDatabase = ({ database, owner }: DatabaseNames): string =>
  `CREATE DATABASE ${quoted(database)} OWNER ${quoted(owner)} ENCODING 'UTF8' TEMPLATE template0`

/** Returns the statements that let only the roles of the service connect. By default every role of the server may. */
export const closeDatabase = ({ database, users }: DatabaseNames): ReadonlyArray<string> => [
  `REVOKE ALL ON DATABASE ${quoted(database)} FROM PUBLIC`,
  `GRANT CONNECT ON DATABASE ${quoted(database)} TO ${list(everyRole.map((role) => users[role]))}`
]

/** Returns the statements that give the schema to the owner. They run in the new database. */
export const giveSchema = ({ owner }: DatabaseNames): ReadonlyArray<string> => [
  `ALTER SCHEMA public OWNER TO ${quoted(owner)}`,
  "REVOKE CREATE ON SCHEMA public FROM PUBLIC"
]

/**
 * Returns the statements that let an administrator who is not a superuser give a database to this role, and the
 * statement that ends that.
 */
export const borrowRole = (owner: string): readonly [borrow: string, giveBack: string] => [
  `GRANT ${quoted(owner)} TO CURRENT_USER`,
  `REVOKE ${quoted(owner)} FROM CURRENT_USER`
]

/** Returns the statement that removes a database. */
export const dropDatabase = (name: string): string => `DROP DATABASE IF EXISTS ${quoted(name)}`

/** Returns the statement that removes a role. */
export const dropRole = (name: string): string => `DROP ROLE IF EXISTS ${quoted(name)}`

/** Returns the statements that give a role of the server exactly the rights of a process with one role. */
const grantsTo = (user: string, role: Role): ReadonlyArray<string> => [
  `REVOKE ALL ON ALL TABLES IN SCHEMA public FROM ${quoted(user)}`,
  `GRANT USAGE ON SCHEMA public TO ${quoted(user)}`,
  ...[...needed(new Set([role]))].map((right) => {
    const [privilege, table, column] = partsOfRight(right)
    return `GRANT ${privilege}${column === "" ? "" : ` (${quoted(column)})`} ON ${quoted(table)} TO ${quoted(user)}`
  })
]

/** Returns the statements that give each role of a process its rights. The owner runs them after the migrations. */
export const grantRights = ({ users }: DatabaseNames): ReadonlyArray<string> =>
  everyRole.flatMap((role) => grantsTo(users[role], role))

/** What matters about the session of an administrator. */
export interface AdministratorState {
  readonly version: number
  readonly isSuperuser: boolean
  readonly mayCreateRoles: boolean
  readonly mayCreateDatabases: boolean
}

/** A role that exists, and what it has beyond the right to log in. */
export interface ExistingRole {
  readonly name: string
  readonly mayLogIn: boolean
  /** What the role has that none of the service's roles has, in words. */
  readonly excess: ReadonlyArray<string>
}

const first = (rows: ReadonlyArray<Row>): Row => rows[0] ?? {}

/** Reads what the administrator of this session may do. */
export const readAdministrator = (session: Connection): Effect.Effect<AdministratorState, SqlError> =>
  Effect.map(
    session.execute(
      `SELECT current_setting('server_version_num')::integer AS "version", rolsuper AS "super",
         rolcreaterole AS "roles", rolcreatedb AS "databases" FROM pg_roles WHERE rolname = current_user`,
      []
    ),
    (rows) => {
      const row = first(rows)
      const isSuperuser = row["super"] === true
      return {
        version: Number(row["version"]),
        isSuperuser,
        mayCreateRoles: isSuperuser || row["roles"] === true,
        mayCreateDatabases: isSuperuser || row["databases"] === true
      }
    }
  )

/** The attributes that a role of the service must not have, in words. */
const attributes: ReadonlyArray<readonly [column: string, says: string]> = [
  ["rolsuper", "is a superuser"],
  ["rolcreaterole", "may create roles"],
  ["rolcreatedb", "may create databases"],
  ["rolreplication", "may replicate"],
  ["rolbypassrls", "bypasses row-level security"]
]

/** Reads which of these roles exist. */
export const readRoles = (
  session: Connection,
  names: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<ExistingRole>, SqlError> =>
  Effect.map(
    session.execute(
      `SELECT rolname::text, rolcanlogin, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,
         ARRAY(SELECT g.rolname::text FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid
           WHERE m.member = r.oid ORDER BY 1) AS "groups"
       FROM pg_roles r WHERE rolname = ANY($1::text[]) ORDER BY 1`,
      [names]
    ),
    (rows) =>
      rows.map((row) => ({
        name: String(row["rolname"]),
        mayLogIn: row["rolcanlogin"] === true,
        excess: [
          ...attributes.flatMap(([column, says]) => row[column] === true ? [says] : []),
          ...(row["groups"] as ReadonlyArray<string>).map((group) => `is a member of ${group}`)
        ]
      }))
  )

/** Reads the owner of a database. Returns undefined if there is no such database. */
export const readOwner = (session: Connection, database: string): Effect.Effect<string | undefined, SqlError> =>
  Effect.map(
    session.execute(
      `SELECT pg_get_userbyid(datdba)::text AS "owner" FROM pg_database WHERE datname = $1`,
      [database]
    ),
    ([row]) => row === undefined ? undefined : String(row["owner"])
  )

/** Reads the name of a table of the schema `public`, if there are tables and the service has made none of them. */
export const readForeignTable = (session: Connection): Effect.Effect<string | undefined, SqlError> =>
  Effect.map(
    session.execute(
      `SELECT min(relname::text) AS "table" FROM pg_class
       WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
         AND to_regclass('public.schema_migrations') IS NULL`,
      []
    ),
    (rows) => {
      const table = first(rows)["table"]
      return typeof table === "string" ? table : undefined
    }
  )

/** Reads whether each role of a process has all its rights to the tables that exist. */
export const hasRights = (session: Connection, { users }: DatabaseNames): Effect.Effect<boolean, SqlError> =>
  Effect.map(
    Effect.forEach(everyRole, (role) => {
      const wanted = [...needed(new Set([role]))].map(partsOfRight)
      const column = (at: 0 | 1 | 2) => wanted.map((parts) => parts[at])
      return session.execute(
        `SELECT EXISTS (SELECT FROM unnest($2::text[], $3::text[], $4::text[]) AS w(privilege, object, part)
           WHERE NOT CASE WHEN part = '' THEN has_table_privilege($1, to_regclass(object), privilege)
             ELSE has_column_privilege($1, to_regclass(object), part, privilege) END) AS "lacks"`,
        [users[role], column(0), column(1), column(2)]
      )
    }),
    (found) => found.every((rows) => first(rows)["lacks"] === false)
  )

import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import { Entropy } from "../../crypto/Entropy.ts"
import { scramVerifier } from "../../crypto/ScramVerifier.ts"
import type { Connection } from "../../engine/sql/Driver.ts"
import { codeOf } from "../../engine/sql/PostgresClient.ts"
import { openSession } from "../../engine/sql/PostgresSession.ts"
import { urlsOfServers, withAllServers } from "../../engine/sql/PostgresUrl.ts"
import { withRemedy } from "../../engine/sql/Remedies.ts"
import type { SqlError } from "../../engine/sql/SqlError.ts"
import { maskedDatabaseUrl } from "../../settings/DatabaseUrl.ts"
import type { DatabaseNames } from "../../store/DatabaseSql.ts"
import * as databaseSql from "../../store/DatabaseSql.ts"

/* Makes a PostgreSQL database and the roles that use it, as an administrator of the server. */

/** The database cannot be made, or the server cannot be reached. `mayPass` means that a later attempt may succeed. */
export class DatabaseRefused extends Data.TaggedError("DatabaseRefused")<{
  readonly message: string
  readonly mayPass: boolean
}> {}

/** What an administrator asks for. */
export interface WantedDatabase {
  /** The URL of the administrator, with the password. */
  readonly admin: Redacted.Redacted
  /** The URL of the service, which names the database and its owner and has the owner's password. */
  readonly service: Redacted.Redacted
  /** Whether the configuration had this URL before, so that the role and the database may exist already. */
  readonly isKnown: boolean
  /** The flag or answer that has the URL of the administrator, in refusals. */
  readonly name: string
  readonly acquire_timeout_ms: number
}

/** What is missing of a database. */
export interface DatabasePlan {
  readonly names: DatabaseNames
  /** The roles that have to be made. */
  readonly roles: ReadonlyArray<string>
  readonly makesDatabase: boolean
  readonly borrows: boolean
}

/** PostgreSQL 15 is the first version in which the owner of a database may change its schema `public`. */
const ownsSchema = 150_000

const partsOf = (url: Redacted.Redacted) => {
  const { pathname, password, username } = new URL(urlsOfServers(Redacted.value(url))[0] ?? "")
  return {
    database: decodeURIComponent(pathname.slice(1)),
    password: decodeURIComponent(password),
    user: decodeURIComponent(username)
  }
}

/** Returns the names that a URL of the service stands for. */
export const namesIn = (service: Redacted.Redacted): DatabaseNames => {
  const { database, user } = partsOf(service)
  return databaseSql.databaseNames(database, user)
}

const refuse = (message: string) => new DatabaseRefused({ message, mayPass: false })

/**
 * What a later attempt cannot change: refused users (28), no such database (3D000), missing rights (42501), old
 * servers.
 */
const lasts = (code: string, message: string): boolean =>
  /^(?:28|3D000|42501)/.test(code) || /^the server is PostgreSQL \d+, and the service needs/.test(message)

const explained = (name: string, url: Redacted.Redacted) => ({ cause }: SqlError): DatabaseRefused => {
  const code = codeOf(cause)
  const message = cause instanceof Error ? cause.message || cause.name : String(cause)
  const said = code.startsWith("28")
    ? `PostgreSQL does not let ${partsOf(url).user} in: ${message}; look at the user and the password`
    : code === "42501"
    ? `${partsOf(url).user} may not do that: ${message}`
    : code === "3D000"
    ? `${message}; name a database that is there, such as postgres`
    : withRemedy(code, message)
  return new DatabaseRefused({
    message: `${name}: ${maskedDatabaseUrl(url)} cannot be used: ${said}.`,
    mayPass: !lasts(code, message)
  })
}

const sessionOf = (wanted: WantedDatabase, url = wanted.admin) =>
  openSession({ url, acquire_timeout_ms: wanted.acquire_timeout_ms })

/** Checks that a database of PostgreSQL lets its user in. `name` is what has the URL, in refusals. */
export const tryDatabase = (
  name: string,
  url: Redacted.Redacted,
  acquire_timeout_ms: number
): Effect.Effect<void, DatabaseRefused> =>
  Effect.scoped(openSession({ url, acquire_timeout_ms })).pipe(Effect.mapError(explained(name, url)), Effect.asVoid)

/** Refuses a role that may more than the service needs, or that cannot be used. */
const refuseExcess = (roles: ReadonlyArray<databaseSql.ExistingRole>) => {
  for (const { excess, mayLogIn, name } of roles) {
    const has = [...mayLogIn ? [] : ["may not log in"], ...excess]
    if (has.length > 0) {
      return refuse(
        `The role ${name} exists with other rights than the service needs: it ${
          has.join(" and ")
        }. Choose another name with --database-name, or change the role.`
      )
    }
  }
  return Effect.void
}

/** Checks that the password of the configuration is that of the role, whether or not the database exists yet. */
const checkPassword = (wanted: WantedDatabase) =>
  Effect.scoped(sessionOf(wanted, wanted.service)).pipe(
    Effect.catchTag("SqlError", (error) =>
      codeOf(error.cause) === "3D000" ? Effect.void : explained("database.url", wanted.service)(error)),
    Effect.asVoid
  )

const refuseForeignTables = (wanted: WantedDatabase, { database }: DatabaseNames) =>
  Effect.scoped(Effect.flatMap(sessionOf(wanted, wanted.service), databaseSql.readForeignTable)).pipe(
    Effect.mapError(explained("database.url", wanted.service)),
    Effect.flatMap((table) =>
      table === undefined ? Effect.void : refuse(
        `The database ${database} has the table ${table}, which is not the service's. Choose another name with --database-name.`
      )
    )
  )

/**
 * Finds out what has to be made, and changes nothing. Refuses everything that would make the work fail: an administrator
 * without the rights, an old server, and a role or a database of somebody else.
 */
export const planDatabase = (wanted: WantedDatabase): Effect.Effect<DatabasePlan, DatabaseRefused> =>
  Effect.gen(function*() {
    const names = namesIn(wanted.service)
    const { database, owner } = names
    const all = databaseSql.rolesOf(names)
    const { administrator, existing, ownedBy } = yield* Effect.scoped(
      Effect.flatMap(sessionOf(wanted), (session) =>
        Effect.all({
          administrator: databaseSql.readAdministrator(session),
          existing: databaseSql.readRoles(session, all),
          ownedBy: databaseSql.readOwner(session, database)
        }))
    ).pipe(Effect.mapError(explained(wanted.name, wanted.admin)))
    yield* refuseExcess(existing)
    const hasOwner = existing.some(({ name }) => name === owner)
    if (ownedBy !== undefined && ownedBy !== owner) {
      return yield* refuse(
        `The database ${database} exists and belongs to ${ownedBy}, so it is not the service's. Choose another name with --database-name.`
      )
    }
    if (hasOwner && !wanted.isKnown) {
      return yield* refuse(
        `The role ${owner} exists, and its password is not known here. If it is the service's, write ${
          maskedDatabaseUrl(wanted.service)
        } with the password into database.url; otherwise choose another name with --database-name.`
      )
    }
    if (hasOwner) yield* checkPassword(wanted)
    if (ownedBy !== undefined) yield* refuseForeignTables(wanted, names)
    const roles = all.filter((name) => !existing.some((role) => role.name === name))
    const makesDatabase = ownedBy === undefined
    const { user } = partsOf(wanted.admin)
    if (roles.length > 0 && !administrator.mayCreateRoles) {
      return yield* refuse(`${wanted.name}: the role ${user} may not create roles: it needs CREATEROLE.`)
    }
    if (makesDatabase && !administrator.mayCreateDatabases) {
      return yield* refuse(`${wanted.name}: the role ${user} may not create databases: it needs CREATEDB.`)
    }
    if (makesDatabase && !administrator.isSuperuser && administrator.version < ownsSchema) {
      return yield* refuse(
        `${wanted.name}: before PostgreSQL 15 only a superuser can give the schema of a database to its owner, and ${user} is none.`
      )
    }
    return { names, roles, makesDatabase, borrows: makesDatabase && !administrator.isSuperuser }
  })

/** Runs statements one after the other. A statement that was sent is waited for, so that what was made is known. */
const runAll = (session: Connection, statements: ReadonlyArray<string>) =>
  Effect.forEach(statements, (text) => Effect.uninterruptible(session.execute(text, [])), { discard: true })

/** Removes what was made, the last thing first. Returns what could not be removed. */
const undo = (session: Connection, made: ReadonlyArray<readonly [what: string, drop: string]>) =>
  Effect.map(
    Effect.forEach(made.toReversed(), ([what, drop]) =>
      Effect.match(Effect.uninterruptible(session.execute(drop, [])), {
        onFailure: () => [what],
        onSuccess: () => []
      })),
    (left) => left.flat()
  )

/**
 * Makes what the plan says. Returns a line for each thing that was made. If a step fails or is interrupted, removes what
 * was made before, and the refusal says whether anything is left.
 */
export const makeDatabase = (
  wanted: WantedDatabase,
  { borrows, makesDatabase, names, roles }: DatabasePlan
): Effect.Effect<ReadonlyArray<string>, DatabaseRefused, Entropy> =>
  Effect.scoped(Effect.gen(function*() {
    const entropy = yield* Entropy
    const session = yield* sessionOf(wanted)
    const made: Array<readonly [what: string, drop: string]> = []
    const [borrow, giveBack] = databaseSql.borrowRole(names.owner)
    const steps = Effect.gen(function*() {
      for (const role of roles) {
        const verifier = role === names.owner
          ? scramVerifier(partsOf(wanted.service).password, yield* entropy.bytes(16))
          : undefined
        yield* Effect.uninterruptible(Effect.tap(
          session.execute(databaseSql.createRole(role, verifier), []),
          () => Effect.sync(() => made.push([`role ${role}`, databaseSql.dropRole(role)]))
        ))
      }
      if (!makesDatabase) return
      if (borrows) yield* runAll(session, [borrow])
      yield* Effect.uninterruptible(Effect.tap(
        session.execute(databaseSql.createDatabase(names), []),
        () => Effect.sync(() => made.push([`database ${names.database}`, databaseSql.dropDatabase(names.database)]))
      ))
      yield* runAll(session, databaseSql.closeDatabase(names))
      const inside = Redacted.make(withAllServers(Redacted.value(wanted.admin), (one) => {
        const url = new URL(one)
        url.pathname = `/${encodeURIComponent(names.database)}`
        return url.href
      }))
      yield* Effect.scoped(
        Effect.flatMap(sessionOf(wanted, inside), (there) => runAll(there, databaseSql.giveSchema(names)))
      )
      if (borrows) yield* runAll(session, [giveBack])
    })
    const left: Array<string> = []
    yield* steps.pipe(
      Effect.onExit((exit) =>
        Exit.isSuccess(exit) ? Effect.void : Effect.gen(function*() {
          left.push(...yield* undo(session, made))
          if (borrows && !roles.includes(names.owner)) yield* Effect.ignore(session.execute(giveBack, []))
        })
      ),
      Effect.mapError((error) => {
        const { mayPass, message } = explained(wanted.name, wanted.admin)(error)
        return new DatabaseRefused({
          mayPass,
          message: `${message} ${left.length === 0 ? "Nothing was left behind." : `Left behind: ${left.join(", ")}.`}`
        })
      })
    )
    return made.map(([what]) => what)
  })).pipe(Effect.catchTag("SqlError", (error) => explained(wanted.name, wanted.admin)(error)))

/**
 * Gives the roles of the processes their rights to the tables, as the owner. Returns whether anything was missing. The
 * change is one transaction, so that running processes see the rights of before or those of after.
 */
export const grantRights = (
  service: Redacted.Redacted,
  acquire_timeout_ms: number
): Effect.Effect<boolean, DatabaseRefused> => {
  const names = namesIn(service)
  return Effect.scoped(Effect.gen(function*() {
    const session = yield* openSession({ url: service, acquire_timeout_ms })
    if (yield* databaseSql.hasRights(session, names)) return false
    const statements = ["BEGIN", ...databaseSql.grantRights(names), "COMMIT"]
    yield* Effect.uninterruptible(session.executeRaw(statements.join(";\n"), []))
    return true
  })).pipe(Effect.mapError(explained("database.url", service)))
}

/** Returns the statements that make the database, as a file for psql. It contains no password, but asks for one. */
export const databaseScript = (names: DatabaseNames): string => {
  const lines = (statements: ReadonlyArray<string>) => statements.map((statement) => `${statement};`)
  return [
    "-- Makes the service's database and its roles. Run it with psql as an administrator of the server; docs/operate/databases.md.",
    "\\set ON_ERROR_STOP on",
    "BEGIN;",
    ...lines(databaseSql.rolesOf(names).map((role) => databaseSql.createRole(role))),
    "COMMIT;",
    `\\password "${names.owner}"`,
    ...lines([databaseSql.createDatabase(names), ...databaseSql.closeDatabase(names)]),
    `\\connect "${names.database}"`,
    ...lines(databaseSql.giveSchema(names))
  ].join("\n")
}

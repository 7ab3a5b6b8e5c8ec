import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { resolve } from "node:path"
import { Entropy } from "../crypto/Entropy.ts"
import { everyRole } from "../domain/Role.ts"
import { fileVariable, variableOf } from "../engine/config/KeyPath.ts"
import { isTaken, removeFile, said, writeNewFile } from "../engine/host/KeyFile.ts"
import { rewriteFile } from "../engine/host/RewrittenFile.ts"
import { urlsOfServers, withAllServers } from "../engine/sql/PostgresUrl.ts"
import type { DatabasePlan, DatabaseRefused, WantedDatabase } from "../operations/operator/NewDatabase.ts"
import { makeDatabase, planDatabase } from "../operations/operator/NewDatabase.ts"
import { maskedDatabaseUrl, postgresUrl } from "../settings/DatabaseUrl.ts"
import { databaseSection, renderInitialConfig } from "../settings/Example.ts"
import type { Loaded } from "../settings/Load.ts"
import { loadConfig } from "../settings/Load.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { Host } from "./Host.ts"
import { isAbsent, isSqlite } from "./OpenDatabase.ts"
import { Settings } from "./Settings.ts"
import { lacksOnlyProfiles } from "./Setup.ts"

/* Makes the PostgreSQL database of the service, and writes its URL where the configuration is read. */

const cannot = (message: string) => new CommandFailed({ code: 3, message })

/** Returns the failure of a command for a refusal of the server. */
export const databaseFailed = ({ mayPass, message }: DatabaseRefused): CommandFailed =>
  new CommandFailed({ code: mayPass ? 1 : 3, message })

/** How long a connection to the server may take. */
export const patienceMs = 10_000

/**
 * Returns what is wrong with the URL of a user of PostgreSQL, as a sentence without a subject. Undefined if nothing is
 * wrong. `user` and `example` say what must be named. A password in a URL is refused, because others can read arguments,
 * and answers are kept in a file.
 */
export const databaseUserFault = (url: string, user: string, example: string): string | undefined => {
  const fault = postgresUrl.fault(url)
  if (fault !== undefined) return fault
  const { password, pathname, username } = new URL(urlsOfServers(url)[0] ?? url)
  if (password !== "") {
    return "must not contain a password, because others could read it: put it into a file, or into PGPASSWORD"
  }
  if (username === "") return `must name ${user}: ${example}`
  return pathname.length > 1 ? undefined : `must name a database that is there: ${example}`
}

/** Does the same as {@link databaseUserFault} for the URL of an administrator. */
export const administratorFault = (url: string): string | undefined =>
  databaseUserFault(url, "the administrator", "postgres://admin@host/postgres")

/** Returns what is wrong with the name of a new database, as a sentence without a subject. */
export const databaseNameFault = (name: string): string | undefined =>
  /^(?!pg_)[a-z_][a-z0-9_]{0,49}$/.test(name)
    ? undefined
    : "must have 1 to 50 lower-case letters, digits and _, must not begin with a digit, and not with pg_"

/** Returns a URL with another user and password and, if it is given, another database. */
export const withPassword = (url: string, user: string, password: string, database?: string): Redacted.Redacted =>
  Redacted.make(withAllServers(url, (one) => {
    const changed = new URL(one)
    changed.username = encodeURIComponent(user)
    changed.password = encodeURIComponent(password)
    if (database !== undefined) changed.pathname = `/${database}`
    return changed.href
  }))

/** The URL of an administrator with the password, and the flag or answer that has it. */
export interface Administrator {
  readonly name: string
  readonly url: Redacted.Redacted
  /** The same URL without the password. */
  readonly shown: string
}

/** Returns an administrator with this password. An empty password means that the server asks for none. */
export const administratorWith = (name: string, url: string, password: string): Administrator => {
  const user = decodeURIComponent(new URL(urlsOfServers(url)[0] ?? url).username)
  return { name, shown: url, url: withPassword(url, user, password) }
}

/** Returns the URL of the service for a new database: the same servers, the name as role and database, a new password. */
export const newServiceUrl = (
  { shown }: Administrator,
  name: string
): Effect.Effect<Redacted.Redacted, never, Entropy> =>
  Effect.flatMap(Entropy, ({ token }) => Effect.map(token, (password) => withPassword(shown, name, password, name)))

const serversOf = (url: string): string =>
  urlsOfServers(url).map((one) => {
    const { hostname, port } = new URL(one)
    return `${hostname}:${port === "" ? "5432" : port}`
  }).join()

/** Where the URL of the service is, or what has to be written so that it is there. */
interface Destination {
  readonly service: Redacted.Redacted
  readonly isKnown: boolean
  /** Writes the URL. Returns the line that says so, and what removes it again. */
  readonly write: Effect.Effect<
    { readonly line: string; readonly undo: Effect.Effect<unknown> } | undefined,
    CommandFailed,
    Entropy
  >
}

const knownUrl = (
  administrator: Administrator,
  name: string | undefined,
  url: string,
  where: string
): Effect.Effect<Destination, CommandFailed> => {
  const masked = maskedDatabaseUrl(Redacted.make(url))
  if (isSqlite(url)) {
    return cannot(
      `database.url is ${masked} in ${where}. Remove it there first; acme-svc transfer copies the rows of that database.`
    )
  }
  if (serversOf(url) !== serversOf(administrator.shown)) {
    return cannot(
      `database.url is ${masked} in ${where}, which is another server than that of ${administrator.name}.`
    )
  }
  const { password, pathname, username } = new URL(urlsOfServers(url)[0] ?? url)
  if (password === "" || username === "" || pathname.length < 2) {
    return cannot(
      `database.url is ${masked} in ${where}. It must name the role, its password and the database, or be removed.`
    )
  }
  if (name !== undefined && pathname !== `/${name}`) {
    return cannot(`database.url is ${masked} in ${where}, which is not the database ${name} of --database-name.`)
  }
  return Effect.succeed({ service: Redacted.make(url), isKnown: true, write: Effect.undefined })
}

/** The name of the database and of its owner, unless another one is given. */
export const usualName = "acme"

/** Writes the URL into a new file, which only its owner can read. */
const intoNewFile = (path: string, shown: string, content: string): Destination["write"] =>
  Effect.gen(function*() {
    const suffix = yield* (yield* Entropy).token
    yield* Effect.mapError(
      writeNewFile({ path, content, mode: 0o600, suffix }),
      (error) => new CommandFailed({ code: 1, message: `${shown} cannot be written: ${said(error)}.` })
    )
    return { line: `configuration ${shown}`, undo: removeFile(path) }
  })

const header = /^[ \t]*\[[ \t]*database[ \t]*\][ \t]*(?:#.*)?$/m

/**
 * Returns the text of a file with the URL in its section `[database]`. If nobody has changed the file that `init` wrote,
 * the result is what `init` would have written with the URL, so that `init` makes the first operator.
 */
const withUrl = (text: string, url: string): string => {
  if (text === renderInitialConfig()) return renderInitialConfig({ database_url: url })
  const section = databaseSection(url)
  const line = section.slice(section.indexOf("\n") + 1)
  return header.test(text)
    ? text.replace(header, (found) => `${found}\n${line.trimEnd()}`)
    : `${text.replace(/\n*$/, "\n")}\n${section}`
}

/** Writes the URL into the file of the configuration, which then has a secret, so that only its owner may read it. */
const intoFile = ({ file: { path, text = "" } }: Loaded, service: Redacted.Redacted) =>
  Effect.gen(function*() {
    const { fresh } = yield* Settings
    const content = withUrl(text, Redacted.value(service))
    const by = (content: string) =>
      Effect.flatMap(Entropy, ({ token }) =>
        Effect.flatMap(token, (suffix) =>
          Effect.mapError(
            rewriteFile({ path, content, suffix, mode: 0o600 }),
            (error) => cannot(`${path} cannot be changed: ${said(error)}. Write database.url there yourself.`)
          )))
    const isRead = yield* Effect.match(fresh(new Set(everyRole), { path, text: content }), {
      onFailure: () => false,
      onSuccess: ({ config }) => Redacted.value(config.database.url) === Redacted.value(service)
    })
    if (!isRead) {
      return yield* cannot(
        `${path} has no place where database.url could be written. Write a section [database] there.`
      )
    }
    const entropy = yield* Entropy
    const write: Destination["write"] = Effect.as(by(content), {
      line: `database.url  ${path}`,
      undo: Effect.ignore(Effect.provideService(by(text), Entropy, entropy))
    })
    return write
  })

/** Finds out where the URL of the service is or has to be written. Changes nothing. */
const destinationOf = Effect.fnUntraced(function*(administrator: Administrator, name: string | undefined) {
  const { cwd, env } = yield* Host
  const variable = variableOf(["database", "url"])
  const ofEnvironment = env[variable]
  if (ofEnvironment !== undefined) return yield* knownUrl(administrator, name, ofEnvironment, variable)
  const read = yield* Effect.result(loadConfig({ env, cwd }))
  const service = yield* newServiceUrl(administrator, name ?? usualName)
  const isNew = { service, isKnown: false }
  if (Result.isFailure(read)) {
    const named = env[fileVariable]
    const shown = named === undefined || named === "" ? "config.toml" : named
    const path = resolve(cwd, shown)
    if (!lacksOnlyProfiles(read.failure) || (yield* isTaken(path))) return yield* cannot(read.failure.message)
    const content = renderInitialConfig({ database_url: Redacted.value(service) })
    return { ...isNew, write: intoNewFile(path, shown, content) }
  }
  const loaded = read.success
  const url = Redacted.value(loaded.config.database.url)
  if (loaded.sources.get("database.url") !== "default") {
    return yield* knownUrl(administrator, name, url, loaded.path)
  }
  if (!(yield* isAbsent(loaded.config))) {
    return yield* cannot(
      `${url} exists and would no longer be used. Write the URL of PostgreSQL into database.url after acme-svc transfer, or move that file away.`
    )
  }
  return {
    ...isNew,
    write: loaded.filePresent
      ? yield* intoFile(loaded, service)
      : intoNewFile(loaded.path, loaded.path, databaseSection(Redacted.value(service)))
  }
})

/** Makes what a plan says. Returns a line for each group of things that was made. */
export const carryOut = (wanted: WantedDatabase, plan: DatabasePlan) =>
  Effect.map(Effect.mapError(makeDatabase(wanted, plan), databaseFailed), () => [
    ...plan.roles.length === 0 ? [] : [`roles         ${plan.roles.join(", ")}`],
    ...plan.makesDatabase ? [`database      ${plan.names.database}`] : []
  ])

/** Returns what {@link planDatabase} needs. */
export const wantedOf = (
  { name, url }: Administrator,
  service: Redacted.Redacted,
  isKnown: boolean
): WantedDatabase => ({ admin: url, name, service, isKnown, acquire_timeout_ms: patienceMs })

/**
 * Makes the database with its roles and writes its URL, unless this was done before. Everything is checked first. The
 * URL is written before anything is made on the server, so that no password is lost, and it is removed again if nothing
 * could be made. Returns the URL, and a line for each thing that was made.
 */
export const makeServiceDatabase = Effect.fnUntraced(function*(
  administrator: Administrator,
  name: string | undefined
) {
  const { isKnown, service, write }: Destination = yield* destinationOf(administrator, name)
  const wanted = wantedOf(administrator, service, isKnown)
  const plan = yield* Effect.mapError(planDatabase(wanted), databaseFailed)
  const written = yield* write
  const made = yield* carryOut(wanted, plan).pipe(
    Effect.onExit((exit) => Exit.isSuccess(exit) || written === undefined ? Effect.void : written.undo)
  )
  return { service, lines: [...written === undefined ? [] : [written.line], ...made] }
})

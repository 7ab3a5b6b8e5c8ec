import * as Redacted from "effect/Redacted"
import type { Form } from "../engine/config/ValueForm.ts"
import {
  lacksHost,
  sessionAttributes,
  sessionAttributesName,
  sessionAttributesOf,
  urlsOfServers,
  withAllServers
} from "../engine/sql/PostgresUrl.ts"

const sqlite = "sqlite://"
const parameters = ["sslmode", "sslrootcert", "application_name", sessionAttributesName]
const isPostgres = (text: string): boolean => /^postgres(?:ql)?:\/\//.test(text)
// eslint-disable-next-line no-control-regex
const unprintable = /[\u0000-\u001f\u007f]/

const sqliteFault = (path: string): string | undefined => {
  if (path === "" || path.endsWith("/")) return `must name a file after ${sqlite}`
  return path.includes("?") ? `must not have a query string with ${sqlite}` : undefined
}

const postgresFault = (text: string): string | undefined => {
  if (text.includes("#")) return "must not contain #; in a user name or password write it as %23"
  if (lacksHost(text)) return "must name a host in each place between the commas"
  const urls = urlsOfServers(text)
  if (!urls.every((url) => URL.canParse(url))) {
    return "is not a well-formed URL; special characters in a password are written as %XX"
  }
  const { searchParams } = new URL(urls[0] ?? text)
  if (![...searchParams.keys()].every((name) => parameters.includes(name))) {
    return `may have no query parameters except ${parameters.join(", ")}`
  }
  return sessionAttributesOf(text) === undefined
    ? `must have one of ${sessionAttributes.join(", ")} as ${sessionAttributesName}`
    : undefined
}

/**
 * A URL: `sqlite://<path>` (three slashes for an absolute path, no query string), or `postgres://` or `postgresql://`
 * with at most the four known parameters, for one server or for several servers. Messages never quote any part of the
 * URL, not even the name of a parameter.
 */
export const databaseUrl: Form = {
  says: "`sqlite://<path>`, `postgres://…` or `postgresql://…`",
  fault: (text) => {
    if (unprintable.test(text)) return "must not contain control characters"
    if (text.startsWith(sqlite)) return sqliteFault(text.slice(sqlite.length))
    if (isPostgres(text)) return postgresFault(text)
    return "must begin with sqlite://, postgres:// or postgresql://"
  }
}

/** Returns the file that a URL names. Returns undefined if the database is not in a file of this machine. */
export const fileOf = (url: Redacted.Redacted<string>): string | undefined => {
  const text = Redacted.value(url)
  return text.startsWith(sqlite) && text !== `${sqlite}:memory:` ? text.slice(sqlite.length) : undefined
}

/** A URL like {@link databaseUrl}, but only for PostgreSQL. */
export const postgresUrl: Form = {
  says: "`postgres://…` or `postgresql://…`",
  fault: (text) => {
    if (unprintable.test(text)) return "must not contain control characters"
    return isPostgres(text) ? postgresFault(text) : "must begin with postgres:// or postgresql://"
  }
}

/** Returns the URL with `***` as its password, for logs and pages. If the URL cannot be read, returns `***`. */
export const maskedDatabaseUrl = (url: Redacted.Redacted<string>): string => {
  const text = Redacted.value(url)
  if (text.startsWith(sqlite)) return text
  if (!isPostgres(text) || !urlsOfServers(text).every((one) => URL.canParse(one))) return "***"
  return withAllServers(text, (one) => {
    const masked = new URL(one)
    if (masked.password !== "") masked.password = "***"
    masked.hash = ""
    const others = [...masked.searchParams.keys()].filter((name) => !parameters.includes(name))
    for (const name of others) masked.searchParams.delete(name)
    return masked.href
  })
}

import * as Redacted from "effect/Redacted"
import type { Form } from "../engine/config/ValueForm.ts"

const sqlite = "sqlite://"
const parameters = ["sslmode", "sslrootcert", "application_name"]
const isPostgres = (text: string): boolean => /^postgres(?:ql)?:\/\//.test(text)
// eslint-disable-next-line no-control-regex
const unprintable = /[\u0000-\u001f\u007f]/

const sqliteFault = (path: string): string | undefined => {
  if (path === "" || path.endsWith("/")) return `must name a file after ${sqlite}`
  return path.includes("?") ? `must not have a query string with ${sqlite}` : undefined
}

const postgresFault = (text: string): string | undefined => {
  if (text.includes("#")) return "must not contain #; in a user name or password write it as %23"
  if (!URL.canParse(text)) return "is not a well-formed URL; special characters in a password are written as %XX"
  const known = [...new URL(text).searchParams.keys()].every((name) => parameters.includes(name))
  return known ? undefined : `may have no query parameters except ${parameters.join(", ")}`
}

/**
 * Accepts `sqlite://<path>` (three slashes for an absolute path, no query string), `postgres://` or `postgresql://`
 * with at most the three known parameters. Messages never quote any part of the URL, not even the name of a parameter.
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

/** The URL with `***` as its password, for logs and pages. A URL that cannot be read becomes `***`. */
export const maskedDatabaseUrl = (url: Redacted.Redacted<string>): string => {
  const text = Redacted.value(url)
  if (text.startsWith(sqlite)) return text
  if (!isPostgres(text) || !URL.canParse(text)) return "***"
  const masked = new URL(text)
  if (masked.password !== "") masked.password = "***"
  masked.hash = ""
  const others = [...masked.searchParams.keys()].filter((name) => !parameters.includes(name))
  for (const name of others) masked.searchParams.delete(name)
  return masked.href
}

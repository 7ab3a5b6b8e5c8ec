import type { FailureCause } from "../telemetry/EngineSeries.ts"
import { withoutAdvice } from "../TlsFault.ts"

/*
 * Explains failures of the database by the code and message of the engine: what a person can do, and which kind of
 * failure it is. Other failures explain themselves, or are faults of this service.
 */

interface Known {
  readonly when: RegExp
  readonly remedy: string
  readonly cause: FailureCause
}

const known: ReadonlyArray<Known> = [
  {
    when: /^SQLITE_(CORRUPT|NOTADB)/,
    cause: "damaged",
    remedy:
      "the database file is damaged: stop the service and put a backup in its place (docs/operate/backup-and-restore.md, \"Restoring SQLite\")"
  },
  { when: /^(SQLITE_FULL|53100)/, cause: "full", remedy: "the disk of the database is full: make room there" },
  {
    when: /^SQLITE_(READONLY|CANTOPEN|IOERR|PERM)/,
    cause: "refused",
    remedy:
      "this host does not let the service read and write the database file and its directory: look at their owner, mode and disk"
  },
  {
    when: /^SQLITE_BUSY/,
    cause: "locked",
    remedy:
      "another process has held the database's write lock for seconds: look for a backup, a command or a second service"
  },
  {
    when: /^42501/,
    cause: "refused",
    remedy:
      "the user of database.url lacks a right on that: run docs/recipes/postgres-roles.sql again as the owner of the tables"
  },
  {
    when: /^55P03/,
    cause: "locked",
    remedy:
      "another session holds a lock for longer than a statement waits: look in pg_stat_activity for a backup, a migration or a long transaction"
  },
  {
    when: /^42P01|no such table/,
    cause: "other",
    remedy:
      "the schema is not this build's: run acme-svc migrate, or look whether database.url names the right database"
  },
  {
    // 42P05: a session has a statement that another client of the proxy has prepared.
    when: /unsupported startup parameter|^42P05|it pools transactions$/,
    cause: "refused",
    remedy:
      "a proxy that pools transactions stands before PostgreSQL: set database.pooling to \"transaction\", and let database.listen_url lead past it"
  },
  {
    when: /self-signed certificate|unable to (get|verify) /,
    cause: "refused",
    remedy: "no CA that is trusted here has signed it: name a file with the server's CA in the URL, sslrootcert=/path"
  },
  {
    // The driver has no code for a connection that ended while a statement was under way.
    when:
      /^(57P0[123]|08006|08001|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)|^Connection terminated|connection error and is not queryable/,
    cause: "away",
    remedy:
      "the PostgreSQL server is down, starting or stopping: a service that runs continues when the server is back, and a start or a command is to be tried again"
  },
  {
    when: /^25006/,
    cause: "refused",
    remedy:
      "the PostgreSQL server takes no writes: it is a standby, or its administrator made it read-only; the service continues when the address leads to a server that takes writes, and database.url may name several"
  },
  {
    when: /^53300/,
    cause: "refused",
    remedy:
      "PostgreSQL has no connection left: lower database.pool_max or raise its max_connections (docs/operate/sizing.md)"
  },
  {
    when: /^28/,
    cause: "refused",
    remedy: "PostgreSQL does not let this user in: look at the user and password of database.url"
  },
  {
    when: /^22P05/,
    cause: "other",
    remedy:
      "the encoding of the database lacks this character: make a database with the encoding UTF8, and move there with acme-svc transfer"
  },
  {
    when: /^42P07|(table|index) \S+ already exists/,
    cause: "other",
    remedy:
      "the database has tables that its list of migrations does not name: it belongs to another program, or was restored in part; use an empty database, or a complete backup"
  }
]

const saidOf = (code: string, message: string): string => {
  const plain = withoutAdvice(message)
  return plain.startsWith(code) ? plain : `${code} ${plain}`
}

const find = (code: string, message: string): Known | undefined => {
  const said = saidOf(code, message)
  return known.find(({ when }) => when.test(said) || when.test(message))
}

/** Returns the code and message of the engine, and a remedy if one is known. */
export const withRemedy = (code: string, message: string): string => {
  const remedy = find(code, message)?.remedy
  return remedy === undefined ? saidOf(code, message) : `${saidOf(code, message)}; ${remedy}`
}

/** Returns the kind of a failure, by the engine's code and message. */
export const causeOf = (code: string, message: string): FailureCause => find(code, message)?.cause ?? "other"

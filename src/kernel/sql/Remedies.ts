/*
 * What a person can do about a failure of the database, by the engine's code and message. Other failures explain
 * themselves, or are faults of this service.
 */

interface Known {
  readonly when: RegExp
  readonly remedy: string
}

const known: ReadonlyArray<Known> = [
  {
    when: /^SQLITE_(CORRUPT|NOTADB)/,
    remedy:
      "the database file is damaged: stop the service and put a backup in its place (docs/operations.md, \"Backup and restore\")"
  },
  { when: /^SQLITE_FULL/, remedy: "the disk of the database is full: make room there" },
  {
    when: /^SQLITE_(READONLY|CANTOPEN|IOERR|PERM)/,
    remedy:
      "this host does not let the service read and write the database file and its directory: look at their owner, mode and disk"
  },
  {
    when: /^SQLITE_BUSY/,
    remedy:
      "another process has held the database's write lock for seconds: look for a backup, a command or a second service"
  },
  {
    when: /^42P01|no such table/,
    remedy:
      "the schema is not this build's: run acme-svc migrate, or look whether database.url names the right database"
  },
  {
    when: /unsupported startup parameter/,
    remedy: "a proxy that pools transactions stands before PostgreSQL: set database.pooling to \"transaction\""
  },
  {
    when: /^(57P0[123]|08006|08001|ECONNREFUSED|ECONNRESET)/,
    remedy:
      "the PostgreSQL server is down, starting or stopping: do nothing here, the service continues when the server is back"
  },
  {
    when: /^53300/,
    remedy: "PostgreSQL has no connection left: lower database.pool_max or raise its max_connections (docs/planning.md)"
  },
  { when: /^28/, remedy: "PostgreSQL does not let this user in: look at the user and password of database.url" },
  {
    when: /^42P07|(table|index) \S+ already exists/,
    remedy:
      "the database has tables that its list of migrations does not name: it belongs to another program, or was restored in part; use an empty database, or a complete backup"
  }
]

/** The engine's code and message, with the remedy if one is known. */
export const withRemedy = (code: string, message: string): string => {
  const said = message.startsWith(code) ? message : `${code} ${message}`
  const remedy = known.find(({ when }) => when.test(said) || when.test(message))?.remedy
  return remedy === undefined ? said : `${said}; ${remedy}`
}

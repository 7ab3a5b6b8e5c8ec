import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of the database: its schema, its statements and its connections. */
export const databaseMeanings = {
  server_schema_behind: [
    "The schema of the database is older than this process needs, so the process does not start.",
    "Run `acme-svc migrate`, or start a worker, which migrates by itself.",
    "operate/upgrade.md"
  ],
  db_opened: "The process has opened its database.",
  db_migration_applied: "A migration of the schema was applied.",
  db_migration_failed: [
    "A migration was not applied, and nothing of it was changed.",
    "Remove the cause that the record names, and run `acme-svc migrate` again.",
    "operate/upgrade.md"
  ],
  db_migration_waiting: [
    "A migration waits, because another session holds a lock on a table that it changes.",
    "End the session that the record names, or wait; the migration gives up after five minutes.",
    "operate/upgrade.md"
  ],
  db_statement_failed: [
    "The database refused a statement, or did not answer.",
    "Look at the error; the runbook says what to do for each cause.",
    "operate/runbooks/database-away.md"
  ],
  db_row_unreadable: [
    "A row has a value that the service never writes, so what needs this row fails.",
    "Correct the column that the record names, or restore the row from a backup; no restart is needed.",
    "operate/debugging.md"
  ],
  db_statement_slow: [
    "A statement took a second or longer.",
    "If this happens often, look at the disk, at the locks and at the load of the database.",
    "operate/runbooks/overload.md"
  ],
  db_pool_timeout: [
    "No connection to the database became free in time, so a request or a job failed.",
    "Raise `database.pool_max` if the server of the database has room, or find what holds the connections.",
    "operate/sizing.md"
  ],
  db_read_only: [
    "The server of the database takes no writes, so nothing can be ordered or issued.",
    "Make the primary writable, or let `database.url` lead to it.",
    "operate/runbooks/database-away.md"
  ],
  db_read_only_ended: "The server of the database takes writes again.",
  db_standby_left: [
    "The standby does not answer the reads of operators, and the primary answers them instead.",
    "Look up the reason of the record in the document; all pages and commands still work.",
    "operate/databases.md"
  ],
  db_standby_used: "The standby answers the reads of operators again.",
  db_listen_lost: [
    "The process is no longer told about new jobs, and looks for them in intervals.",
    "Look at the connection to the database; behind a pooler, set `database.listen_url`.",
    "operate/databases.md"
  ],
  db_listen_restored: "The process is told about new jobs again.",
  db_commits_unsynced: [
    "A power loss may undo changes that the service has acknowledged.",
    "Set `database.sqlite.synchronous` to `full`, unless that loss is acceptable.",
    "operate/service.md"
  ],
  db_rights_missing: [
    "The user of the database lacks rights that this process needs.",
    "Run docs/recipes/postgres-roles.sql again, which gives the roles their rights.",
    "operate/hardening.md"
  ],
  db_change_lost: [
    "This process had committed a change, and the database does not have it any more.",
    "Revoke the certificate of the record with `acme-svc cert revoke SERIAL`, and repeat the acts of operators.",
    "operate/runbooks/restore.md"
  ],
  db_went_back: [
    "The database has gone back to an older state, and the records `db_change_lost` name what it lacks.",
    "Follow the runbook: find out why it went back, and repeat what is missing.",
    "operate/runbooks/restore.md"
  ]
} as const satisfies SomeMeanings

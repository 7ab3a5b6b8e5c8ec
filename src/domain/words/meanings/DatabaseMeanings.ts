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
    "A migration has failed, and has changed nothing.",
    "Remove the cause that the record names, and run `acme-svc migrate` again.",
    "operate/upgrade.md"
  ],
  db_migration_waiting: [
    "A migration waits, because another session holds a lock on a table that it changes, or migrates too.",
    "If the session migrates too, wait. Otherwise end it, or wait; the migration gives up after five minutes.",
    "operate/upgrade.md"
  ],
  db_statement_failed: [
    "The database refused a statement, or did not answer it.",
    "Look at the error; the runbook says what to do for each cause.",
    "operate/runbooks/database-away.md"
  ],
  db_row_unreadable: [
    "A row has a value that the service never writes, so every request and job that needs this row fails.",
    "Correct the column that the record names, or restore the row from a backup; no restart is needed.",
    "operate/debugging.md"
  ],
  db_statement_slow: [
    "A statement took a second or longer.",
    "If this happens often, check the disk, the locks and the load of the database.",
    "operate/runbooks/overload.md"
  ],
  db_pool_timeout: [
    "No connection to the database became free in time, so a request or a job failed.",
    "Raise `database.pool_max` if the database server permits more connections, or find out what holds the connections.",
    "operate/sizing.md"
  ],
  db_read_only: [
    "The database server accepts no writes, so nothing can be ordered or issued.",
    "Make the primary writable, or set `database.url` to the server that is the primary now.",
    "operate/runbooks/database-away.md"
  ],
  db_read_only_ended: "The database server accepts writes again.",
  db_standby_left: [
    "The standby does not answer the reads of operators, so the primary answers them instead.",
    "Look up the reason of the record in the document; meanwhile all pages and commands work.",
    "operate/databases.md"
  ],
  db_standby_used: "The standby answers the reads of operators again.",
  db_listen_lost: [
    "The database no longer tells this process about new jobs, so the process looks for them at intervals.",
    "Check the connection to the database; if there is a pooler between, set `database.listen_url`.",
    "operate/databases.md"
  ],
  db_listen_restored: "The database tells this process about new jobs again.",
  db_commits_unsynced: [
    "If the host loses power, changes that the service has acknowledged can be lost.",
    "Set `database.sqlite.synchronous` to `full`, unless that loss is acceptable.",
    "operate/service.md"
  ],
  db_rights_missing: [
    "The user of the database lacks rights that this process needs.",
    "Run docs/recipes/postgres-roles.sql again, which gives the roles their rights.",
    "operate/hardening.md"
  ],
  db_change_lost: [
    "This process had committed a change, but the database does not have the change any more.",
    "Follow the runbook; if the record names a certificate, revoke it with `acme-svc cert revoke SERIAL`.",
    "operate/runbooks/restore.md"
  ],
  db_went_back: [
    "The database has gone back to an older state; the records `db_change_lost` name the changes that it lacks.",
    "Follow the runbook: find out why it went back, and repeat what is missing.",
    "operate/runbooks/restore.md"
  ]
} as const satisfies SomeMeanings

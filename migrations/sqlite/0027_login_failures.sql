-- Wrong passwords in a row, for each operator, each address that an operator is known by, and each name that nobody has. A row is
-- changed by each failure and goes when nothing has failed for long, and is found by its time for that.

CREATE TABLE login_failures (
  key TEXT NOT NULL PRIMARY KEY,
  failures INTEGER NOT NULL,
  last_failed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID

CREATE INDEX login_failures_last_failed_at ON login_failures (last_failed_at)

-- How far each receiver of the audit trail is (docs/decisions/audit-push.md). The receiver has taken the rows up to pushed_id. After a
-- broken connection, the rows after repeat_from are sent once more. lost_upto: the retention has deleted rows up to this id that the
-- receiver never got, while the receiver was not configured.

CREATE TABLE audit_receivers (
  name TEXT PRIMARY KEY,
  pushed_id INTEGER NOT NULL,
  repeat_from INTEGER NOT NULL,
  pushed_at INTEGER,
  failures INTEGER NOT NULL DEFAULT 0,
  failing_since INTEGER,
  error TEXT,
  lost_upto INTEGER
) STRICT

-- The periodic check of the chain. There is one row. next_sequence: the link after which the check that is under way continues. head:
-- the newest link at the end of the last whole check, as number and hash.

CREATE TABLE audit_chain_checks (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  begun_at INTEGER NOT NULL,
  next_sequence INTEGER,
  verified INTEGER NOT NULL DEFAULT 0,
  faults INTEGER NOT NULL DEFAULT 0,
  ended_at INTEGER,
  ended_verified INTEGER,
  ended_faults INTEGER,
  head TEXT
) STRICT

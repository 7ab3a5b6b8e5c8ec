-- How far each receiver of the audit trail is (docs/decisions/audit-push.md). The receiver has taken the rows up to pushed_id. After a
-- broken connection, the rows after repeat_from are sent once more. lost_upto: the retention has deleted rows up to this id that the
-- receiver never got, while the receiver was not configured.

CREATE TABLE audit_receivers (
  name TEXT COLLATE "C" PRIMARY KEY,
  pushed_id BIGINT NOT NULL,
  repeat_from BIGINT NOT NULL,
  pushed_at BIGINT,
  failures BIGINT NOT NULL DEFAULT 0,
  failing_since BIGINT,
  error TEXT COLLATE "C",
  lost_upto BIGINT
)

-- The periodic check of the chain. There is one row. next_sequence: the link after which the check that is under way continues. head:
-- the newest link at the end of the last whole check, as number and hash.

CREATE TABLE audit_chain_checks (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  begun_at BIGINT NOT NULL,
  next_sequence BIGINT,
  verified BIGINT NOT NULL DEFAULT 0,
  faults BIGINT NOT NULL DEFAULT 0,
  ended_at BIGINT,
  ended_verified BIGINT,
  ended_faults BIGINT,
  head TEXT COLLATE "C"
)

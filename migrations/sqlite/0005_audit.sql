-- The audit trail: inserted, read, pruned by age, never changed.

CREATE TABLE audit_log (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  created_at INTEGER NOT NULL,
  event TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('success', 'failure')),
  actor_kind TEXT NOT NULL CHECK (actor_kind IN ('acme', 'admin', 'cli', 'system')),
  actor_id TEXT,
  profile TEXT,
  account_id TEXT,
  order_id TEXT,
  cert_serial TEXT,
  identifiers TEXT NOT NULL DEFAULT '[]',
  client_ip TEXT,
  client_ptr TEXT,
  user_agent TEXT,
  request_id TEXT,
  reason TEXT,
  detail TEXT
) STRICT

CREATE INDEX audit_log_created_at ON audit_log (created_at)

CREATE INDEX audit_log_event_created_at ON audit_log (event, created_at)

CREATE INDEX audit_log_account_id ON audit_log (account_id)

CREATE INDEX audit_log_order_id ON audit_log (order_id)

CREATE INDEX audit_log_cert_serial ON audit_log (cert_serial)

CREATE TRIGGER audit_log_is_append_only BEFORE UPDATE ON audit_log
BEGIN
  SELECT RAISE(ABORT, 'audit_log rows are never changed');
END

-- The audit trail: inserted, read, pruned by age, never changed.

CREATE TABLE audit_log (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  created_at BIGINT NOT NULL,
  event TEXT COLLATE "C" NOT NULL,
  outcome TEXT COLLATE "C" NOT NULL CHECK (outcome IN ('success', 'failure')),
  actor_kind TEXT COLLATE "C" NOT NULL CHECK (actor_kind IN ('acme', 'admin', 'cli', 'system')),
  actor_id TEXT COLLATE "C",
  profile TEXT COLLATE "C",
  account_id TEXT COLLATE "C",
  order_id TEXT COLLATE "C",
  cert_serial TEXT COLLATE "C",
  identifiers TEXT COLLATE "C" NOT NULL DEFAULT '[]',
  client_ip TEXT COLLATE "C",
  client_ptr TEXT COLLATE "C",
  user_agent TEXT COLLATE "C",
  request_id TEXT COLLATE "C",
  reason TEXT COLLATE "C",
  detail TEXT COLLATE "C"
)

CREATE INDEX audit_log_created_at ON audit_log (created_at)

CREATE INDEX audit_log_event_created_at ON audit_log (event, created_at)

CREATE INDEX audit_log_account_id ON audit_log (account_id)

CREATE INDEX audit_log_order_id ON audit_log (order_id)

CREATE INDEX audit_log_cert_serial ON audit_log (cert_serial)

CREATE FUNCTION audit_log_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'audit_log rows are never changed';
END
$$

CREATE TRIGGER audit_log_is_append_only BEFORE UPDATE ON audit_log
  FOR EACH ROW EXECUTE FUNCTION audit_log_refuse_update()

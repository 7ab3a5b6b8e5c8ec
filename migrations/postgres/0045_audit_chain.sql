-- The chain of the audit trail (docs/decisions/audit-chain.md). A row is a link: it covers the rows of the trail after the last_id
-- of the link before it, up to its own last_id. leaves: for each row its id, its time and the SHA-256 of its values, 48 octets. The
-- first link covers nothing: the rows up to its last_id are older than the chain.

CREATE TABLE audit_chain (
  sequence BIGINT PRIMARY KEY,
  first_id BIGINT NOT NULL,
  last_id BIGINT NOT NULL,
  row_count BIGINT NOT NULL,
  newest_at BIGINT NOT NULL,
  chained_at BIGINT NOT NULL,
  previous TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  signature TEXT COLLATE "C",
  key_id TEXT COLLATE "C",
  signed_at BIGINT,
  leaves BYTEA NOT NULL
)

-- The signed heads, of which there is one a day.
CREATE INDEX audit_chain_signed ON audit_chain (sequence) WHERE signature IS NOT NULL

CREATE FUNCTION audit_chain_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'links of audit_chain are never changed';
END
$$

CREATE TRIGGER audit_chain_is_append_only
  BEFORE UPDATE OF sequence, first_id, last_id, row_count, newest_at, chained_at, previous, hash, leaves ON audit_chain
  FOR EACH ROW EXECUTE FUNCTION audit_chain_refuse_update()

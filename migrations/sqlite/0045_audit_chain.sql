-- The chain of the audit trail (docs/decisions/audit-chain.md). A row is a link: it covers the rows of the trail after the last_id
-- of the link before it, up to its own last_id. leaves: for each row its id, its time and the SHA-256 of its values, 48 octets. The
-- first link covers nothing: the rows up to its last_id are older than the chain.

CREATE TABLE audit_chain (
  sequence INTEGER PRIMARY KEY,
  first_id INTEGER NOT NULL,
  last_id INTEGER NOT NULL,
  row_count INTEGER NOT NULL,
  newest_at INTEGER NOT NULL,
  chained_at INTEGER NOT NULL,
  previous TEXT NOT NULL,
  hash TEXT NOT NULL,
  signature TEXT,
  key_id TEXT,
  signed_at INTEGER,
  leaves BLOB NOT NULL
) STRICT

-- The signed heads, of which there is one a day.
CREATE INDEX audit_chain_signed ON audit_chain (sequence) WHERE signature IS NOT NULL

CREATE TRIGGER audit_chain_is_append_only
BEFORE UPDATE OF sequence, first_id, last_id, row_count, newest_at, chained_at, previous, hash, leaves ON audit_chain
BEGIN
  SELECT RAISE(ABORT, 'links of audit_chain are never changed');
END

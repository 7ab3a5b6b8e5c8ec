-- A CA whose key others may have. Nothing that it signs is stored any more, and a job revokes what it has signed. `scanned_to` is the
-- last order that the job has looked at, and `scanned_at` says when it had looked at all.
CREATE TABLE compromised_issuers (
  issuer TEXT NOT NULL PRIMARY KEY,
  compromised_at INTEGER NOT NULL,
  actor_kind TEXT NOT NULL,
  actor_id TEXT,
  scanned_to BLOB NOT NULL,
  scanned_at INTEGER
) STRICT

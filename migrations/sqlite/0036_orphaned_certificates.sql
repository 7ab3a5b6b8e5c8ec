-- Certificates that a program or an upstream issued and whose order ended without them. They are revoked by their signer, or kept
-- for operators to see. An order may be gone sooner than its row here.

CREATE TABLE orphaned_certificates (
  order_id BLOB NOT NULL,
  fingerprint TEXT NOT NULL,
  profile TEXT NOT NULL,
  serial TEXT NOT NULL,
  leaf BLOB NOT NULL,
  not_after INTEGER NOT NULL,
  cause TEXT NOT NULL,
  status TEXT NOT NULL,
  error TEXT,
  found_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (order_id, fingerprint)
) STRICT

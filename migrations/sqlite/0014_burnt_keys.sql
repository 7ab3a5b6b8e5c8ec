-- Keys that are known to others: whoever brings one, or for one account, where nothing but that account's word says so. The
-- account is all zeros for everybody. What was revoked for compromise before is everybody's, as it was until now.

CREATE TABLE burnt_keys (
  pubkey BLOB NOT NULL,
  account_id BLOB NOT NULL CHECK (length(account_id) = 16),
  burnt_at INTEGER NOT NULL,
  PRIMARY KEY (pubkey, account_id)
) STRICT, WITHOUT ROWID

INSERT INTO burnt_keys (pubkey, account_id, burnt_at)
  SELECT cert_pubkey, zeroblob(16), min(revoked_at) FROM orders
  WHERE revocation_reason = 1 AND cert_pubkey IS NOT NULL AND revoked_at IS NOT NULL GROUP BY cert_pubkey

-- Once a key is burnt, its other certificates are looked for.
CREATE INDEX orders_live_pubkey ON orders (cert_pubkey) WHERE certificate IS NOT NULL AND revoked_at IS NULL

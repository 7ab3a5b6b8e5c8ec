-- What belongs to a signer: revocations and CRLs of a local CA, upstream orders and tokens of a relay.

CREATE TABLE upstream_orders (
  order_id BLOB NOT NULL PRIMARY KEY REFERENCES orders (id) ON DELETE CASCADE,
  status TEXT NOT NULL CHECK (status IN ('processing', 'valid', 'invalid')),
  upstream_order_url TEXT,
  upstream_finalize_url TEXT,
  upstream_certificate_url TEXT,
  csr_der BLOB NOT NULL,
  error TEXT,
  client_ip TEXT,
  client_ptr TEXT,
  user_agent TEXT,
  request_id TEXT,
  started_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT

CREATE INDEX upstream_orders_status_updated_at ON upstream_orders (status, updated_at)

CREATE TABLE revocations (
  issuer TEXT NOT NULL,
  serial TEXT NOT NULL,
  revoked_at INTEGER NOT NULL,
  reason INTEGER,
  not_after INTEGER,
  PRIMARY KEY (issuer, serial)
) STRICT, WITHOUT ROWID

CREATE INDEX revocations_issuer_not_after ON revocations (issuer, not_after)

CREATE TABLE crls (
  issuer TEXT NOT NULL PRIMARY KEY,
  crl_number INTEGER NOT NULL,
  der BLOB NOT NULL,
  this_update INTEGER NOT NULL,
  next_update INTEGER NOT NULL
) STRICT

CREATE TABLE http01_tokens (
  token TEXT NOT NULL PRIMARY KEY,
  key_authorization TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID

CREATE INDEX http01_tokens_expires_at ON http01_tokens (expires_at)

-- Accounts, orders, authorizations, challenges and nonces. Statements are separated by an empty line.

CREATE TABLE eab_keys (
  kid BLOB NOT NULL PRIMARY KEY CHECK (length(kid) = 16),
  secret BLOB NOT NULL,
  label TEXT,
  profile TEXT,
  status TEXT NOT NULL CHECK (status IN ('active', 'revoked')),
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID

CREATE TABLE accounts (
  id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
  profile TEXT NOT NULL,
  pubkey BLOB NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('valid', 'deactivated', 'revoked')),
  contact TEXT NOT NULL DEFAULT '[]',
  terms_of_service_agreed INTEGER CHECK (terms_of_service_agreed IN (0, 1)),
  eab_kid BLOB,
  created_at INTEGER NOT NULL,
  created_ip TEXT,
  created_ptr TEXT,
  last_seen_at INTEGER,
  last_seen_ip TEXT,
  last_seen_ptr TEXT,
  CONSTRAINT accounts_profile_pubkey UNIQUE (profile, pubkey)
) STRICT

CREATE INDEX accounts_eab_kid ON accounts (eab_kid)

CREATE INDEX accounts_profile_created_at ON accounts (profile, created_at)

CREATE TABLE orders (
  id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
  profile TEXT NOT NULL,
  account_id BLOB NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  status TEXT NOT NULL CHECK (status IN ('pending', 'ready', 'processing', 'valid', 'invalid')),
  identifiers TEXT NOT NULL,
  not_before INTEGER,
  not_after INTEGER,
  replaces TEXT,
  error TEXT,
  certificate TEXT,
  cert_serial TEXT,
  cert_pubkey BLOB,
  cert_not_after INTEGER,
  revoked_at INTEGER,
  revocation_reason INTEGER,
  created_at INTEGER NOT NULL,
  created_ip TEXT,
  created_ptr TEXT
) STRICT

CREATE INDEX orders_account_id_id ON orders (account_id, id)

-- The account's open orders: what its in-flight validations are counted over.
CREATE INDEX orders_account_id_pending ON orders (account_id) WHERE status = 'pending'

CREATE INDEX orders_created_at ON orders (created_at)

CREATE INDEX orders_status_created_at ON orders (status, created_at)

CREATE INDEX orders_profile_created_at ON orders (profile, created_at)

CREATE INDEX orders_profile_cert_serial ON orders (profile, cert_serial) WHERE cert_serial IS NOT NULL

CREATE INDEX orders_profile_cert_not_after ON orders (profile, cert_not_after)
  WHERE certificate IS NOT NULL AND revoked_at IS NULL

-- A key burnt by a keyCompromise revocation is looked for at every finalize.
CREATE INDEX orders_compromised_pubkey ON orders (cert_pubkey) WHERE revocation_reason = 1

CREATE UNIQUE INDEX orders_profile_replaces ON orders (profile, replaces)
  WHERE replaces IS NOT NULL AND status <> 'invalid'

CREATE TABLE order_identifiers (
  order_id BLOB NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
  profile TEXT NOT NULL,
  name TEXT NOT NULL,
  name_rev TEXT NOT NULL,
  PRIMARY KEY (order_id, name)
) STRICT, WITHOUT ROWID

CREATE INDEX order_identifiers_profile_name ON order_identifiers (profile, name)

CREATE INDEX order_identifiers_name ON order_identifiers (name)

CREATE INDEX order_identifiers_name_rev ON order_identifiers (name_rev)

CREATE TABLE authorizations (
  id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
  order_id BLOB NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
  identifier TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'valid', 'invalid', 'deactivated', 'expired', 'revoked')),
  created_at INTEGER NOT NULL,
  CONSTRAINT authorizations_order_id_identifier UNIQUE (order_id, identifier)
) STRICT, WITHOUT ROWID

CREATE TABLE challenges (
  id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
  authz_id BLOB NOT NULL REFERENCES authorizations (id) ON DELETE CASCADE,
  type TEXT NOT NULL CHECK (type IN ('http-01', 'dns-01', 'tls-alpn-01')),
  position INTEGER NOT NULL,
  token TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'valid', 'invalid')),
  validated_at INTEGER,
  error TEXT,
  created_at INTEGER NOT NULL,
  CONSTRAINT challenges_authz_id_type UNIQUE (authz_id, type)
) STRICT, WITHOUT ROWID

CREATE INDEX challenges_processing ON challenges (authz_id) WHERE status = 'processing'

CREATE TABLE nonces (
  value TEXT NOT NULL PRIMARY KEY,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID

CREATE INDEX nonces_created_at ON nonces (created_at)

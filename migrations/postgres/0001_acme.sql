-- Accounts, orders, authorizations, challenges and nonces. Statements are separated by an empty line.

CREATE TABLE eab_keys (
  kid BYTEA NOT NULL PRIMARY KEY CHECK (length(kid) = 16),
  secret BYTEA NOT NULL,
  label TEXT COLLATE "C",
  profile TEXT COLLATE "C",
  status TEXT COLLATE "C" NOT NULL CHECK (status IN ('active', 'revoked')),
  created_at BIGINT NOT NULL
)

CREATE TABLE accounts (
  id UUID NOT NULL PRIMARY KEY,
  profile TEXT COLLATE "C" NOT NULL,
  pubkey BYTEA NOT NULL,
  status TEXT COLLATE "C" NOT NULL CHECK (status IN ('valid', 'deactivated', 'revoked')),
  contact TEXT COLLATE "C" NOT NULL DEFAULT '[]',
  terms_of_service_agreed BOOLEAN,
  eab_kid BYTEA,
  created_at BIGINT NOT NULL,
  created_ip TEXT COLLATE "C",
  created_ptr TEXT COLLATE "C",
  last_seen_at BIGINT,
  last_seen_ip TEXT COLLATE "C",
  last_seen_ptr TEXT COLLATE "C",
  CONSTRAINT accounts_profile_pubkey UNIQUE (profile, pubkey)
)

CREATE INDEX accounts_eab_kid ON accounts (eab_kid)

CREATE INDEX accounts_profile_created_at ON accounts (profile, created_at)

CREATE TABLE orders (
  id UUID NOT NULL PRIMARY KEY,
  profile TEXT COLLATE "C" NOT NULL,
  account_id UUID NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  status TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending', 'ready', 'processing', 'valid', 'invalid')),
  identifiers TEXT COLLATE "C" NOT NULL,
  not_before BIGINT,
  not_after BIGINT,
  replaces TEXT COLLATE "C",
  error TEXT COLLATE "C",
  certificate TEXT COLLATE "C",
  cert_serial TEXT COLLATE "C",
  cert_pubkey BYTEA,
  cert_not_after BIGINT,
  revoked_at BIGINT,
  revocation_reason BIGINT,
  created_at BIGINT NOT NULL,
  created_ip TEXT COLLATE "C",
  created_ptr TEXT COLLATE "C"
)

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
CREATE INDEX orders_compromised_pubkey ON orders (sha256(cert_pubkey)) WHERE revocation_reason = 1

CREATE UNIQUE INDEX orders_profile_replaces ON orders (profile, replaces)
  WHERE replaces IS NOT NULL AND status <> 'invalid'

CREATE TABLE order_identifiers (
  order_id UUID NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
  profile TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  name_rev TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (order_id, name)
)

CREATE INDEX order_identifiers_profile_name ON order_identifiers (profile, name)

CREATE INDEX order_identifiers_name ON order_identifiers (name)

CREATE INDEX order_identifiers_name_rev ON order_identifiers (name_rev)

CREATE TABLE authorizations (
  id UUID NOT NULL PRIMARY KEY,
  order_id UUID NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
  identifier TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending', 'valid', 'invalid', 'deactivated', 'expired', 'revoked')),
  created_at BIGINT NOT NULL,
  CONSTRAINT authorizations_order_id_identifier UNIQUE (order_id, identifier)
)

CREATE TABLE challenges (
  id UUID NOT NULL PRIMARY KEY,
  authz_id UUID NOT NULL REFERENCES authorizations (id) ON DELETE CASCADE,
  type TEXT COLLATE "C" NOT NULL CHECK (type IN ('http-01', 'dns-01', 'tls-alpn-01')),
  position BIGINT NOT NULL,
  token TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending', 'processing', 'valid', 'invalid')),
  validated_at BIGINT,
  error TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  CONSTRAINT challenges_authz_id_type UNIQUE (authz_id, type)
)

CREATE INDEX challenges_processing ON challenges (authz_id) WHERE status = 'processing'

CREATE TABLE nonces (
  value TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  created_at BIGINT NOT NULL
)

CREATE INDEX nonces_created_at ON nonces (created_at)

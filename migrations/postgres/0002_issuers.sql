-- What belongs to a signer: revocations and CRLs of a local CA, upstream orders and tokens of a relay.

CREATE TABLE upstream_orders (
  order_id UUID NOT NULL PRIMARY KEY REFERENCES orders (id) ON DELETE CASCADE,
  status TEXT COLLATE "C" NOT NULL CHECK (status IN ('processing', 'valid', 'invalid')),
  upstream_order_url TEXT COLLATE "C",
  upstream_finalize_url TEXT COLLATE "C",
  upstream_certificate_url TEXT COLLATE "C",
  csr_der BYTEA NOT NULL,
  error TEXT COLLATE "C",
  client_ip TEXT COLLATE "C",
  client_ptr TEXT COLLATE "C",
  user_agent TEXT COLLATE "C",
  request_id TEXT COLLATE "C",
  started_at BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
)

CREATE INDEX upstream_orders_status_updated_at ON upstream_orders (status, updated_at)

CREATE TABLE revocations (
  issuer TEXT COLLATE "C" NOT NULL,
  serial TEXT COLLATE "C" NOT NULL,
  revoked_at BIGINT NOT NULL,
  reason BIGINT,
  not_after BIGINT,
  PRIMARY KEY (issuer, serial)
)

CREATE INDEX revocations_issuer_not_after ON revocations (issuer, not_after)

CREATE TABLE crls (
  issuer TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  crl_number BIGINT NOT NULL,
  der BYTEA NOT NULL,
  this_update BIGINT NOT NULL,
  next_update BIGINT NOT NULL
)

CREATE TABLE http01_tokens (
  token TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  key_authorization TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
)

CREATE INDEX http01_tokens_expires_at ON http01_tokens (expires_at)

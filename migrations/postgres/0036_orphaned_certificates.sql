-- Certificates that a program or an upstream issued and whose order ended without them. They are revoked by their signer, or kept
-- for operators to see. An order may be gone sooner than its row here.

CREATE TABLE orphaned_certificates (
  order_id UUID NOT NULL,
  fingerprint TEXT COLLATE "C" NOT NULL,
  profile TEXT COLLATE "C" NOT NULL,
  serial TEXT COLLATE "C" NOT NULL,
  leaf BYTEA NOT NULL,
  not_after BIGINT NOT NULL,
  cause TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  error TEXT COLLATE "C",
  found_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (order_id, fingerprint)
)

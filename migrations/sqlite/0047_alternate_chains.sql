-- Chains that clients may have in place of the usual one (RFC 8555 section 7.4.2): PEM without the leaf. id is the SHA-256 of chain.

CREATE TABLE alternate_chains (
  id TEXT NOT NULL PRIMARY KEY,
  chain TEXT NOT NULL
) STRICT

-- The ids of the alternate chains of the certificate, a JSON array in the order of their URLs. NULL: there is none.

ALTER TABLE orders ADD COLUMN alternate_chains TEXT

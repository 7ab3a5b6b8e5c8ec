-- What a credential may ask for. NULL is no restriction, for credentials of every version before this one too. names and kinds are
-- JSON arrays of texts, expires_at is in epoch seconds.

ALTER TABLE eab_keys ADD COLUMN names TEXT

ALTER TABLE eab_keys ADD COLUMN wildcards INTEGER CHECK (wildcards IN (0, 1))

ALTER TABLE eab_keys ADD COLUMN kinds TEXT

ALTER TABLE eab_keys ADD COLUMN validity_seconds INTEGER

ALTER TABLE eab_keys ADD COLUMN orders_per_day INTEGER

ALTER TABLE eab_keys ADD COLUMN max_accounts INTEGER

ALTER TABLE eab_keys ADD COLUMN expires_at INTEGER

ALTER TABLE eab_keys ADD COLUMN prevalidated INTEGER CHECK (prevalidated IN (0, 1))

-- The identifier that another server gave to a credential that was taken over from it.

ALTER TABLE eab_keys ADD COLUMN external_kid TEXT

CREATE UNIQUE INDEX eab_keys_external_kid ON eab_keys (external_kid, profile) WHERE external_kid IS NOT NULL

CREATE UNIQUE INDEX eab_keys_external_everywhere ON eab_keys (external_kid) WHERE external_kid IS NOT NULL AND profile IS NULL

-- When the credential of the account was deleted although it had names. Such an account may order nothing.

ALTER TABLE accounts ADD COLUMN scope_lost INTEGER

-- The longest lifetime that the credential of the account allows the certificate, in seconds. Written when the order is finalized.

ALTER TABLE orders ADD COLUMN validity_bound INTEGER

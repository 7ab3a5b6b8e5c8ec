-- What a credential may ask for. NULL is no restriction, for credentials of every version before this one too. names and kinds are
-- JSON arrays of texts, expires_at is in epoch seconds.

ALTER TABLE eab_keys ADD COLUMN names TEXT COLLATE "C"

ALTER TABLE eab_keys ADD COLUMN wildcards BOOLEAN

ALTER TABLE eab_keys ADD COLUMN kinds TEXT COLLATE "C"

ALTER TABLE eab_keys ADD COLUMN validity_seconds BIGINT

ALTER TABLE eab_keys ADD COLUMN orders_per_day BIGINT

ALTER TABLE eab_keys ADD COLUMN max_accounts BIGINT

ALTER TABLE eab_keys ADD COLUMN expires_at BIGINT

ALTER TABLE eab_keys ADD COLUMN prevalidated BOOLEAN

-- The identifier that another server gave to a credential that was taken over from it.

ALTER TABLE eab_keys ADD COLUMN external_kid TEXT COLLATE "C"

CREATE UNIQUE INDEX eab_keys_external_kid ON eab_keys (external_kid, profile) WHERE external_kid IS NOT NULL

CREATE UNIQUE INDEX eab_keys_external_everywhere ON eab_keys (external_kid) WHERE external_kid IS NOT NULL AND profile IS NULL

-- When the credential of the account was deleted although it had names. Such an account may order nothing.

ALTER TABLE accounts ADD COLUMN scope_lost BIGINT

-- The longest lifetime that the credential of the account allows the certificate, in seconds. Written when the order is finalized.

ALTER TABLE orders ADD COLUMN validity_bound BIGINT

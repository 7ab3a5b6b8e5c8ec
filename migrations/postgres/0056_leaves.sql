-- The chain of an order's certificate in a second form: certificate is empty, leaf is the leaf as DER, and issuers is the SHA-256 of
-- the other certificates, which alternate_chains has as PEM. NULL: certificate has the whole chain, or leaf is all of it.

ALTER TABLE orders ADD COLUMN leaf BYTEA

ALTER TABLE orders ADD COLUMN issuers BYTEA

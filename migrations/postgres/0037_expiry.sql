-- When an order and its authorizations expire, as their client was told. NULL: a version before this one made the order, and the
-- configuration in force says how long it lives.

ALTER TABLE orders ADD COLUMN expires_at BIGINT

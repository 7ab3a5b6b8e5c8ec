-- When the upstream wants a relayed certificate renewed (RFC 9773) and where it says why, and when it is asked again; NULL: never.
-- What is there already is due.

ALTER TABLE upstream_orders ADD COLUMN renewal_start INTEGER

ALTER TABLE upstream_orders ADD COLUMN renewal_end INTEGER

ALTER TABLE upstream_orders ADD COLUMN renewal_url TEXT

ALTER TABLE upstream_orders ADD COLUMN renewal_due INTEGER DEFAULT 0

CREATE INDEX upstream_orders_renewal_due ON upstream_orders (renewal_due) WHERE renewal_due IS NOT NULL

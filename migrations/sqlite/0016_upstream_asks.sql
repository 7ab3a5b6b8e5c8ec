-- How many times an upstream was asked for an order without saying where it is, and when it was asked last.

ALTER TABLE upstream_orders ADD COLUMN asks INTEGER NOT NULL DEFAULT 0

ALTER TABLE upstream_orders ADD COLUMN asked_at INTEGER

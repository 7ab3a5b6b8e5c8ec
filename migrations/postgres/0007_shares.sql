-- While a kind has its share of the slots, claims pass over its rows: each other kind is read by itself. An upstream order is one
-- order's here, and found by its URL.

CREATE INDEX jobs_due_of_kind ON jobs (kind, run_at, id) WHERE status = 'ready'

CREATE UNIQUE INDEX upstream_orders_url ON upstream_orders (upstream_order_url) WHERE upstream_order_url IS NOT NULL

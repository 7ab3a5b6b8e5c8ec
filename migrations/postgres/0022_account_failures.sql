-- The failed orders of an account, which operators look for first. It is not written when a certificate is issued.

CREATE INDEX orders_account_failed ON orders (account_id, created_at) WHERE status = 'invalid'

-- The orders of an account in the order of lists, and its certificates that may be in use. An account may have many orders, and both
-- were found by reading all of them.

CREATE INDEX orders_account_created_at ON orders (account_id, created_at)

CREATE INDEX orders_account_live ON orders (account_id, cert_not_after)
  WHERE certificate IS NOT NULL AND revoked_at IS NULL

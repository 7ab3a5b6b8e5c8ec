-- The orders of an account, and accounts in any profile, are found by their ids, which begin with their time.

DROP INDEX orders_account_created_at

DROP INDEX accounts_created_at

-- Free space in the page of an order lets the order stay there when its status changes, without new index entries.
ALTER TABLE orders SET (fillfactor = 90)

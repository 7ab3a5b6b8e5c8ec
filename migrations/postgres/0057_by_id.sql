-- The orders of an account, and accounts in any profile, are found by their ids, which begin with their time.

DROP INDEX orders_account_created_at

DROP INDEX accounts_created_at

-- An order changes its status three times. Free space in its page lets it stay there without new index entries.
ALTER TABLE orders SET (fillfactor = 90)

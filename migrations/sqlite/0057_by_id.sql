-- The orders of an account, and accounts in any profile, are found by their ids, which begin with their time.

DROP INDEX orders_account_created_at

DROP INDEX accounts_created_at

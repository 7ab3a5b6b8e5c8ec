-- An operator has blocked the account: since when, in epoch seconds, and why. NULL is no block, for accounts of every version before
-- this one too. The reason is for operators only.

ALTER TABLE accounts ADD COLUMN blocked_at INTEGER

ALTER TABLE accounts ADD COLUMN block_reason TEXT

CREATE INDEX accounts_blocked ON accounts (created_at, id, profile) WHERE blocked_at IS NOT NULL AND status = 'valid'

-- A version that knows no blocks would issue to a blocked account. Such a process cannot write its row while an account is blocked,
-- and so does not start.

CREATE TRIGGER workers_know_blocks BEFORE INSERT ON workers
  FOR EACH ROW WHEN (' ' || coalesce(NEW.knows, '') || ' ') NOT LIKE '% blocks %' AND
    EXISTS (SELECT 1 FROM accounts WHERE blocked_at IS NOT NULL AND status = 'valid')
BEGIN
  SELECT RAISE(ABORT, 'an account is blocked, which this version of acme-svc does not know; start a newer version');
END

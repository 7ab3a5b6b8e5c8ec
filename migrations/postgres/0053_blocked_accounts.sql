-- An operator has blocked the account: since when, in epoch seconds, and why. NULL is no block, for accounts of every version before
-- this one too. The reason is for operators only.

ALTER TABLE accounts ADD COLUMN blocked_at BIGINT

ALTER TABLE accounts ADD COLUMN block_reason TEXT COLLATE "C"

CREATE INDEX accounts_blocked ON accounts (created_at, id, profile) WHERE blocked_at IS NOT NULL AND status = 'valid'

-- A version that knows no blocks would issue to a blocked account. Such a process cannot write its row while an account is blocked,
-- and so does not start. The lock waits for a block that is being set. A block that is set afterwards waits for this row, and is
-- refused because of it.
CREATE FUNCTION workers_refuse_unblocking() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('acme-svc account blocks', 0));
  IF EXISTS (SELECT 1 FROM accounts WHERE blocked_at IS NOT NULL AND status = 'valid') THEN
    RAISE EXCEPTION 'an account is blocked, which this version of acme-svc does not know; start a newer version';
  END IF;
  RETURN NEW;
END
$$

CREATE TRIGGER workers_know_blocks BEFORE INSERT ON workers
  FOR EACH ROW WHEN ((' ' || coalesce(NEW.knows, '') || ' ') NOT LIKE '% blocks %')
  EXECUTE FUNCTION workers_refuse_unblocking()

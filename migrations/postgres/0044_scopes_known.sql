-- A version that knows no scopes would issue what a credential forbids. Such a process says nothing about what it knows. It cannot
-- write its row if a credential has a scope, and so does not start.

CREATE INDEX accounts_scope_lost ON accounts (scope_lost) WHERE scope_lost IS NOT NULL

-- The lock waits for a scope that is being set. A scope that is set afterwards waits for this row, and is refused because of it.
CREATE FUNCTION workers_refuse_unknowing() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE eab_keys IN SHARE MODE;
  IF EXISTS (
    SELECT 1 FROM eab_keys
    WHERE names IS NOT NULL OR kinds IS NOT NULL OR validity_seconds IS NOT NULL OR orders_per_day IS NOT NULL
      OR max_accounts IS NOT NULL OR expires_at IS NOT NULL OR wildcards OR prevalidated
  ) OR EXISTS (SELECT 1 FROM accounts WHERE scope_lost IS NOT NULL AND status = 'valid') THEN
    RAISE EXCEPTION 'a credential has a scope, which this version of acme-svc does not know; start a newer version';
  END IF;
  RETURN NEW;
END
$$

CREATE TRIGGER workers_know_scopes BEFORE INSERT ON workers
  FOR EACH ROW WHEN ((' ' || coalesce(NEW.knows, '') || ' ') NOT LIKE '% scopes %')
  EXECUTE FUNCTION workers_refuse_unknowing()

-- A version that knows no scopes would issue what a credential forbids. Such a process says nothing about what it knows. It cannot
-- write its row if a credential has a scope, and so does not start.

CREATE INDEX accounts_scope_lost ON accounts (scope_lost) WHERE scope_lost IS NOT NULL

CREATE TRIGGER workers_know_scopes BEFORE INSERT ON workers
  FOR EACH ROW WHEN (' ' || coalesce(NEW.knows, '') || ' ') NOT LIKE '% scopes %' AND (
    EXISTS (
      SELECT 1 FROM eab_keys
      WHERE names IS NOT NULL OR kinds IS NOT NULL OR validity_seconds IS NOT NULL OR orders_per_day IS NOT NULL
        OR max_accounts IS NOT NULL OR expires_at IS NOT NULL OR wildcards = 1 OR prevalidated = 1
    ) OR EXISTS (SELECT 1 FROM accounts WHERE scope_lost IS NOT NULL AND status = 'valid')
  )
BEGIN
  SELECT RAISE(ABORT, 'a credential has a scope, which this version of acme-svc does not know; start a newer version');
END

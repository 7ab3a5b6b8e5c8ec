-- An order that fails gives up its claim to replace a certificate, and keeps in another column what it claimed, as on PostgreSQL,
-- where the status is in no index any more. The indexes of orders stay: SQLite writes an entry only if it changes, and a version
-- before this one names them.

ALTER TABLE orders ADD COLUMN failed_replaces TEXT

UPDATE orders SET failed_replaces = replaces, replaces = NULL WHERE status = 'invalid' AND replaces IS NOT NULL

CREATE TRIGGER orders_replaces_given_up AFTER UPDATE OF status ON orders
  FOR EACH ROW WHEN NEW.status = 'invalid' AND NEW.replaces IS NOT NULL
BEGIN
  UPDATE orders SET failed_replaces = replaces, replaces = NULL WHERE id = NEW.id;
END

-- Most accounts have no credential.
DROP INDEX accounts_eab_kid

CREATE INDEX accounts_eab_kid ON accounts (eab_kid) WHERE eab_kid IS NOT NULL

-- The running jobs are found by their status. A renewal of their leases changes no other index.
DROP INDEX jobs_leases

-- A name is found at each profile by the index of profiles and names.
DROP INDEX order_identifiers_name

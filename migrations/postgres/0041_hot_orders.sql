-- An order changes its status three times. PostgreSQL writes no index entries for a change if no index of the table has a changed
-- column, not even in its condition. So no index names the status any more. An order that is not valid has no certificate, and the
-- indexes of such orders are by that.

ALTER TABLE orders ADD COLUMN failed_replaces TEXT COLLATE "C"

-- An order that fails gives up its claim to replace a certificate, and keeps in another column what it claimed. A version before this
-- one does the same, because the database does it. That version names the columns of this index, and its condition follows from what
-- that version says.
UPDATE orders SET failed_replaces = replaces, replaces = NULL WHERE status = 'invalid' AND replaces IS NOT NULL

CREATE FUNCTION orders_give_up_replaces() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE orders SET failed_replaces = replaces, replaces = NULL WHERE id = NEW.id;
  RETURN NULL;
END
$$

CREATE TRIGGER orders_replaces_given_up AFTER UPDATE OF status ON orders
  FOR EACH ROW WHEN (NEW.status = 'invalid' AND NEW.replaces IS NOT NULL) EXECUTE FUNCTION orders_give_up_replaces()

DROP INDEX orders_profile_replaces

CREATE UNIQUE INDEX orders_profile_replaces ON orders (profile, replaces) WHERE replaces IS NOT NULL

DROP INDEX orders_account_id_pending

DROP INDEX orders_account_failed

CREATE INDEX orders_account_unissued ON orders (account_id, created_at) WHERE certificate IS NULL

DROP INDEX orders_profile_failed

CREATE INDEX orders_profile_unissued ON orders (profile, created_at) WHERE certificate IS NULL

DROP INDEX orders_status_created_at

CREATE INDEX orders_unissued ON orders (created_at) WHERE certificate IS NULL

-- Most accounts have no credential.
DROP INDEX accounts_eab_kid

CREATE INDEX accounts_eab_kid ON accounts (eab_kid) WHERE eab_kid IS NOT NULL

-- The running jobs are found by their status. A renewal of their leases changes no other index.
DROP INDEX jobs_leases

-- A name is found at each profile by the index of profiles and names.
DROP INDEX order_identifiers_name

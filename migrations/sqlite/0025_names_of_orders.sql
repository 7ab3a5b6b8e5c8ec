-- The orders that have a name, newest first: whether a certificate was followed by another is then known from the first order
-- met. All orders with its name were read, oldest first.

CREATE INDEX order_identifiers_profile_name_order ON order_identifiers (profile, name, order_id)

DROP INDEX order_identifiers_profile_name

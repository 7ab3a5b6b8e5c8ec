-- Whether another reason for a job came while it ran. What was revoked during the signing of a list is seen by that, whatever the
-- clocks say, and is not looked for by its time any more; revoked keys have had a table of their own since 0014.

ALTER TABLE jobs ADD COLUMN joined INTEGER NOT NULL DEFAULT 0

DROP INDEX revocations_issuer_revoked_at

DROP INDEX orders_compromised_pubkey

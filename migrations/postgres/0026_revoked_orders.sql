-- The orders whose certificate was revoked, which operators list after an incident: of everybody, of a profile and of an account.
-- None of them is written when a certificate is issued.

CREATE INDEX orders_revoked ON orders (created_at) WHERE revoked_at IS NOT NULL

CREATE INDEX orders_profile_revoked ON orders (profile, created_at) WHERE revoked_at IS NOT NULL

CREATE INDEX orders_account_revoked ON orders (account_id, created_at) WHERE revoked_at IS NOT NULL

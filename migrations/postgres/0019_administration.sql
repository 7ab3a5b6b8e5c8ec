-- What operators list and delete: accounts of every profile by age, the audit trail of one profile and its failures, and orders
-- whose certificate was revoked and has ended. None of them is written when a certificate is issued but the second.

CREATE INDEX accounts_created_at ON accounts (created_at, id)

CREATE INDEX audit_log_profile_created_at ON audit_log (profile, created_at, event)

CREATE INDEX audit_log_failures ON audit_log (created_at) WHERE outcome = 'failure'

CREATE INDEX orders_profile_revoked_not_after ON orders (profile, cert_not_after)
  WHERE certificate IS NOT NULL AND revoked_at IS NOT NULL

-- What operators filter lists by and no index had: accounts that are not valid, orders of a profile that failed, and rows of the
-- trail that no client caused. None of them is written when a certificate is issued.

CREATE INDEX accounts_ended ON accounts (created_at, id, profile, status) WHERE status <> 'valid'

CREATE INDEX orders_profile_failed ON orders (profile, created_at) WHERE status = 'invalid'

CREATE INDEX audit_log_actors ON audit_log (actor_kind, created_at) WHERE actor_kind <> 'acme'

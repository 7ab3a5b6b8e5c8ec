-- Least rights for each process, on PostgreSQL: docs/operate/hardening.md, "Database". Run by the role that owns the tables, in the
-- service's database, after `acme-svc migrate`, and again after each upgrade, which may bring tables. It needs CREATEROLE once.
-- It is one transaction: processes that run see their rights of before or those of after, and a refusal changes nothing.

\set ON_ERROR_STOP on

BEGIN;

DO $$
DECLARE
  name TEXT;
  foreign_table TEXT;
BEGIN
  SELECT format('%I belongs to %s', relname, relowner::regrole) INTO foreign_table FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT pg_has_role(relowner, 'USAGE') LIMIT 1;
  IF foreign_table IS NOT NULL THEN
    RAISE EXCEPTION 'nothing was changed: table %, and % is not its owner', foreign_table, current_user;
  END IF;
  FOREACH name IN ARRAY ARRAY['acme_front', 'acme_admin', 'acme_worker'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
      EXECUTE format('CREATE ROLE %I LOGIN', name);
    END IF;
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA public FROM %I', name);
    EXECUTE format('GRANT USAGE ON SCHEMA public TO %I', name);
  END LOOP;
END $$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;

-- Every process compares the schema, tells of itself, enqueues work, and appends to the trail.
GRANT SELECT ON schema_migrations, crls, revocations, profile_states TO acme_front, acme_admin, acme_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON workers, jobs, nonces TO acme_front, acme_admin, acme_worker;
GRANT SELECT, INSERT ON audit_log TO acme_front, acme_admin, acme_worker;

-- `serve --role acme`: no operator, no session and no token is within its reach, and it deletes no record.
GRANT SELECT, INSERT, UPDATE ON accounts, orders, authorizations, challenges TO acme_front;
GRANT SELECT, INSERT ON order_identifiers, burnt_keys, revocations TO acme_front;
GRANT SELECT ON eab_keys, http01_tokens, upstream_orders, alternate_chains, campaigns, campaign_certificates TO acme_front;
GRANT UPDATE (asked, matched, replaced, revoked, expired) ON campaigns TO acme_front;
GRANT UPDATE (asked_at) ON campaign_certificates TO acme_front;

-- `serve --role admin`.
GRANT SELECT, INSERT, UPDATE, DELETE ON
  accounts, orders, authorizations, challenges, order_identifiers, eab_keys, upstream_orders,
  admin_users, admin_sessions, admin_recovery_codes, admin_password_links, api_tokens, login_attempts,
  login_failures TO acme_admin;
GRANT SELECT, INSERT ON revocations, burnt_keys, compromised_issuers TO acme_admin;
GRANT SELECT, INSERT, UPDATE ON campaigns TO acme_admin;
GRANT SELECT ON expiry_digests, expiry_reminders, reminded_addresses, orphaned_certificates, audit_chain,
  audit_chain_checks, audit_receivers, campaign_certificates, campaign_samples, alternate_chains TO acme_admin;

-- `serve --role worker`: everything but the schema, second factors and tokens. It sweeps sessions and the trail.
GRANT SELECT, INSERT, UPDATE, DELETE ON
  accounts, orders, authorizations, challenges, order_identifiers, upstream_orders, http01_tokens, revocations, crls,
  burnt_keys, orphaned_certificates, profile_states, authority_notices, expiry_digests, expiry_reminders,
  reminded_addresses, login_attempts, login_failures TO acme_worker;
GRANT SELECT ON eab_keys TO acme_worker;
GRANT SELECT (id, username, status, role, contact_email) ON admin_users TO acme_worker;
GRANT SELECT, DELETE ON admin_sessions, admin_password_links TO acme_worker;
GRANT DELETE ON audit_log TO acme_worker;
GRANT SELECT, INSERT, DELETE ON audit_chain TO acme_worker;
GRANT SELECT, INSERT ON alternate_chains, campaign_samples TO acme_worker;
GRANT SELECT, UPDATE ON compromised_issuers, campaigns TO acme_worker;
GRANT SELECT, INSERT, UPDATE ON campaign_certificates, audit_chain_checks, audit_receivers TO acme_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON renewal_hours TO acme_worker;
GRANT UPDATE (signature, key_id, signed_at) ON audit_chain TO acme_worker;

-- What PostgreSQL only warns of is refused too.
DO $$
DECLARE
  name TEXT;
BEGIN
  FOREACH name IN ARRAY ARRAY['acme_front', 'acme_admin', 'acme_worker'] LOOP
    IF has_schema_privilege(name, 'public', 'CREATE') OR NOT has_schema_privilege(name, 'public', 'USAGE') THEN
      RAISE EXCEPTION 'nothing was changed: % has to use the schema public and to make nothing there, and only its owner can settle that',
        name;
    END IF;
  END LOOP;
END $$;

COMMIT;

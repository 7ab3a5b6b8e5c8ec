-- Makes the service's database, the role that owns it and a role for each role of a process: docs/operate/databases.md.
-- Run once by a superuser, in the database postgres. The roles have no password yet. It ends with an error if one of them, or
-- the database, is there already.

\set ON_ERROR_STOP on

BEGIN;

-- Migrates, and is the only one that changes the schema.
CREATE ROLE acme LOGIN;

-- The processes: serve --role acme, admin and worker. docs/recipes/postgres-roles.sql says what each of them may do.
CREATE ROLE acme_front LOGIN;
CREATE ROLE acme_admin LOGIN;
CREATE ROLE acme_worker LOGIN;

COMMIT;

CREATE DATABASE acme OWNER acme ENCODING 'UTF8' TEMPLATE template0;

-- By default every role of the server may connect to every database.
REVOKE ALL ON DATABASE acme FROM PUBLIC;

GRANT CONNECT ON DATABASE acme TO acme_front, acme_admin, acme_worker;

\connect acme

-- Before PostgreSQL 15 this schema belongs to the superuser, and everybody may make tables in it.
ALTER SCHEMA public OWNER TO acme;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;

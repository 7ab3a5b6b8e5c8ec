-- Operators of the panel, their sessions and second factors.

CREATE TABLE admin_users (
  id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
  username TEXT NOT NULL CONSTRAINT admin_users_username UNIQUE,
  password_hash TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
  role TEXT,
  contact_email TEXT,
  totp_secret BLOB,
  totp_pending_secret BLOB,
  totp_last_step INTEGER,
  known_login_ips TEXT NOT NULL DEFAULT '[]',
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  last_login_at INTEGER
) STRICT

CREATE TABLE admin_sessions (
  token_hash TEXT NOT NULL PRIMARY KEY,
  user_id BLOB NOT NULL REFERENCES admin_users (id) ON DELETE CASCADE,
  csrf_token TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending_mfa', 'active')),
  mfa_attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  created_ip TEXT,
  user_agent TEXT
) STRICT

CREATE INDEX admin_sessions_user_id ON admin_sessions (user_id)

CREATE INDEX admin_sessions_expires_at ON admin_sessions (expires_at)

CREATE TABLE admin_recovery_codes (
  id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
  user_id BLOB NOT NULL REFERENCES admin_users (id) ON DELETE CASCADE,
  code_hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  used_at INTEGER
) STRICT

CREATE INDEX admin_recovery_codes_user_id ON admin_recovery_codes (user_id)

CREATE TABLE login_attempts (
  key TEXT NOT NULL PRIMARY KEY,
  window_started_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL
) STRICT, WITHOUT ROWID

-- Operators of the panel, their sessions and second factors.

CREATE TABLE admin_users (
  id UUID NOT NULL PRIMARY KEY,
  username TEXT COLLATE "C" NOT NULL CONSTRAINT admin_users_username UNIQUE,
  password_hash TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL CHECK (status IN ('active', 'disabled')),
  role TEXT COLLATE "C",
  contact_email TEXT COLLATE "C",
  totp_secret BYTEA,
  totp_pending_secret BYTEA,
  totp_last_step BIGINT,
  known_login_ips TEXT COLLATE "C" NOT NULL DEFAULT '[]',
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  last_login_at BIGINT
)

CREATE TABLE admin_sessions (
  token_hash TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  user_id UUID NOT NULL REFERENCES admin_users (id) ON DELETE CASCADE,
  csrf_token TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending_mfa', 'active')),
  mfa_attempts BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  created_ip TEXT COLLATE "C",
  user_agent TEXT COLLATE "C"
)

CREATE INDEX admin_sessions_user_id ON admin_sessions (user_id)

CREATE INDEX admin_sessions_expires_at ON admin_sessions (expires_at)

CREATE TABLE admin_recovery_codes (
  id UUID NOT NULL PRIMARY KEY,
  user_id UUID NOT NULL REFERENCES admin_users (id) ON DELETE CASCADE,
  code_hash TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  used_at BIGINT
)

CREATE INDEX admin_recovery_codes_user_id ON admin_recovery_codes (user_id)

CREATE TABLE login_attempts (
  key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  window_started_at BIGINT NOT NULL,
  attempts BIGINT NOT NULL
)

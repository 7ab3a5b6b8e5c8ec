-- What programs sign in with for an operator. A name is its owner's once among tokens that are neither revoked nor at their end,
-- which no index can say, since it knows no time. Ended windows of sign-ins are swept, and found by when they began.

CREATE TABLE api_tokens (
  id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
  user_id BLOB NOT NULL REFERENCES admin_users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  token_hash TEXT NOT NULL CONSTRAINT api_tokens_token_hash UNIQUE,
  allowed_addresses TEXT NOT NULL DEFAULT '[]',
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  last_used_at INTEGER,
  last_used_ip TEXT,
  revoked_at INTEGER
) STRICT

CREATE INDEX api_tokens_user_id ON api_tokens (user_id, id)

CREATE INDEX login_attempts_window_started_at ON login_attempts (window_started_at)

-- What programs sign in with for an operator. A name is its owner's once among tokens that are neither revoked nor at their end,
-- which no index can say, since it knows no time. Ended windows of sign-ins are swept, and found by when they began.

CREATE TABLE api_tokens (
  id UUID NOT NULL PRIMARY KEY,
  user_id UUID NOT NULL REFERENCES admin_users (id) ON DELETE CASCADE,
  name TEXT COLLATE "C" NOT NULL,
  role TEXT COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  token_hash TEXT COLLATE "C" NOT NULL CONSTRAINT api_tokens_token_hash UNIQUE,
  allowed_addresses TEXT COLLATE "C" NOT NULL DEFAULT '[]',
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  last_used_at BIGINT,
  last_used_ip TEXT COLLATE "C",
  revoked_at BIGINT
)

CREATE INDEX api_tokens_user_id ON api_tokens (user_id, id)

CREATE INDEX login_attempts_window_started_at ON login_attempts (window_started_at)

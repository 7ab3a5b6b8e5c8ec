-- The link with which an operator sets a password: the SHA-256 of its token, NULL before one was made. serve makes one at each start
-- for an operator to whom a link is owed, because init has given that operator a password that nobody knows. The row of a used
-- link stays until its end, so that a second use is told from a wrong link. owed is 0 or 1.

CREATE TABLE admin_password_links (
  user_id UUID NOT NULL PRIMARY KEY REFERENCES admin_users (id) ON DELETE CASCADE,
  token_hash TEXT COLLATE "C",
  expires_at BIGINT,
  used_at BIGINT,
  owed BIGINT NOT NULL
)

CREATE UNIQUE INDEX admin_password_links_token_hash ON admin_password_links (token_hash)

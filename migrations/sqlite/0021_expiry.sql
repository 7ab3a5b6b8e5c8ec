-- When operators were last told of the certificates of a profile that end soon, when the contacts of an account were last written
-- to about one of them, and how many such mails an address got today. `key` is the SHA-256 of the address. A time later than now
-- was written by a clock that was ahead: `doubted_at` is when that was seen.

CREATE TABLE expiry_digests (
  profile TEXT NOT NULL PRIMARY KEY,
  sent_at INTEGER NOT NULL,
  doubted_at INTEGER
) STRICT

CREATE TABLE expiry_reminders (
  order_id BLOB NOT NULL PRIMARY KEY CHECK (length(order_id) = 16) REFERENCES orders (id) ON DELETE CASCADE,
  sent_at INTEGER NOT NULL
) STRICT

CREATE INDEX expiry_reminders_sent_at ON expiry_reminders (sent_at)

CREATE TABLE reminded_addresses (
  key TEXT NOT NULL PRIMARY KEY,
  window_started_at INTEGER NOT NULL,
  mails INTEGER NOT NULL
) STRICT

CREATE INDEX reminded_addresses_window_started_at ON reminded_addresses (window_started_at)

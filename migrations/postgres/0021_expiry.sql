-- When operators were last told of the certificates of a profile that end soon, when the contacts of an account were last written
-- to about one of them, and how many such mails an address got today. `key` is the SHA-256 of the address. A time later than now
-- was written by a clock that was ahead: `doubted_at` is when that was seen.

CREATE TABLE expiry_digests (
  profile TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  sent_at BIGINT NOT NULL,
  doubted_at BIGINT
)

CREATE TABLE expiry_reminders (
  order_id UUID NOT NULL PRIMARY KEY REFERENCES orders (id) ON DELETE CASCADE,
  sent_at BIGINT NOT NULL
)

CREATE INDEX expiry_reminders_sent_at ON expiry_reminders (sent_at)

CREATE TABLE reminded_addresses (
  key TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  window_started_at BIGINT NOT NULL,
  mails BIGINT NOT NULL
)

CREATE INDEX reminded_addresses_window_started_at ON reminded_addresses (window_started_at)

-- A campaign asks clients to replace certificates (docs/decisions/campaigns.md). `filter` is a JSON object. `pace` is in certificates
-- an hour; NULL spreads the renewals over one polling interval. `begun_at` is when the first window begins, later by every pause.
-- `filled_to`, `looked_to` and `revoked_to` are the last orders at which the jobs of the campaign have arrived.

CREATE TABLE campaigns (
  id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
  state TEXT NOT NULL CHECK (state IN ('running', 'paused', 'ended')),
  filter TEXT NOT NULL,
  reason TEXT NOT NULL,
  explanation_url TEXT,
  pace INTEGER,
  created_at INTEGER NOT NULL,
  actor_kind TEXT NOT NULL,
  actor_id TEXT,
  revoke_at INTEGER,
  revoke_reason INTEGER,
  confirmed_at INTEGER,
  confirmed_kind TEXT,
  confirmed_by TEXT,
  revoke_due INTEGER,
  revoked_to BLOB NOT NULL,
  filled_to BLOB NOT NULL,
  filled_at INTEGER,
  looked_to BLOB NOT NULL,
  begun_at INTEGER,
  span_seconds INTEGER,
  paused_at INTEGER,
  ended_at INTEGER,
  finished INTEGER NOT NULL DEFAULT 0 CHECK (finished IN (0, 1)),
  matched INTEGER NOT NULL DEFAULT 0,
  asked INTEGER NOT NULL DEFAULT 0,
  replaced INTEGER NOT NULL DEFAULT 0,
  revoked INTEGER NOT NULL DEFAULT 0,
  expired INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID

-- The certificates that a campaign has matched, by their orders. `asked_at` is 0 if no client has asked for renewal information since
-- the campaign began. A certificate leaves the campaign when it was replaced or revoked, or has expired.

CREATE TABLE campaign_certificates (
  order_id BLOB NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
  campaign_id BLOB NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
  asked_at INTEGER NOT NULL DEFAULT 0,
  mailed_at INTEGER,
  left_at INTEGER,
  left_as TEXT CHECK (left_as IN ('replaced', 'revoked', 'expired')),
  PRIMARY KEY (order_id, campaign_id)
) STRICT, WITHOUT ROWID

CREATE INDEX campaign_certificates_open ON campaign_certificates (campaign_id, order_id, asked_at, left_at) WHERE left_at IS NULL

-- How many certificates were left in a campaign at a time, for its chart.

CREATE TABLE campaign_samples (
  campaign_id BLOB NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
  sampled_at INTEGER NOT NULL,
  remaining INTEGER NOT NULL,
  asked INTEGER NOT NULL,
  PRIMARY KEY (campaign_id, sampled_at)
) STRICT, WITHOUT ROWID

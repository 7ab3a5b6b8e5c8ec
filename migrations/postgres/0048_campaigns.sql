-- A campaign asks clients to replace certificates (docs/decisions/campaigns.md). `filter` is a JSON object. `pace` is in certificates
-- an hour; NULL spreads the renewals over one polling interval. `begun_at` is when the first window begins, later by every pause.
-- `filled_to`, `looked_to` and `revoked_to` are the last orders at which the jobs of the campaign have arrived.

CREATE TABLE campaigns (
  id UUID NOT NULL PRIMARY KEY,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('running', 'paused', 'ended')),
  filter TEXT COLLATE "C" NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  explanation_url TEXT COLLATE "C",
  pace BIGINT,
  created_at BIGINT NOT NULL,
  actor_kind TEXT COLLATE "C" NOT NULL,
  actor_id TEXT COLLATE "C",
  revoke_at BIGINT,
  revoke_reason BIGINT,
  confirmed_at BIGINT,
  confirmed_kind TEXT COLLATE "C",
  confirmed_by TEXT COLLATE "C",
  revoke_due BIGINT,
  revoked_to UUID NOT NULL,
  filled_to UUID NOT NULL,
  filled_at BIGINT,
  looked_to UUID NOT NULL,
  begun_at BIGINT,
  span_seconds BIGINT,
  paused_at BIGINT,
  ended_at BIGINT,
  finished BOOLEAN NOT NULL DEFAULT FALSE,
  matched BIGINT NOT NULL DEFAULT 0,
  asked BIGINT NOT NULL DEFAULT 0,
  replaced BIGINT NOT NULL DEFAULT 0,
  revoked BIGINT NOT NULL DEFAULT 0,
  expired BIGINT NOT NULL DEFAULT 0
)

-- The certificates that a campaign has matched, by their orders. `asked_at` is 0 if no client has asked for renewal information since
-- the campaign began. A certificate leaves the campaign when it was replaced or revoked, or has expired.

CREATE TABLE campaign_certificates (
  order_id UUID NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
  campaign_id UUID NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
  asked_at BIGINT NOT NULL DEFAULT 0,
  mailed_at BIGINT,
  left_at BIGINT,
  left_as TEXT COLLATE "C" CHECK (left_as IN ('replaced', 'revoked', 'expired')),
  PRIMARY KEY (order_id, campaign_id)
)

CREATE INDEX campaign_certificates_open ON campaign_certificates (campaign_id, order_id, asked_at, left_at) WHERE left_at IS NULL

-- How many certificates were left in a campaign at a time, for its chart.

CREATE TABLE campaign_samples (
  campaign_id UUID NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
  sampled_at BIGINT NOT NULL,
  remaining BIGINT NOT NULL,
  asked BIGINT NOT NULL,
  PRIMARY KEY (campaign_id, sampled_at)
)

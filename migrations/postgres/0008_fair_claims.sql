-- Whose a job is among those of its kind, so that claims can go from one to the next; and the time it has taken so far, which a
-- process that dies does not add to.

ALTER TABLE jobs ADD COLUMN share TEXT COLLATE "C" NOT NULL DEFAULT ''

ALTER TABLE jobs ADD COLUMN spent_seconds BIGINT NOT NULL DEFAULT 0

CREATE INDEX jobs_shares ON jobs (kind, share, run_at, id) WHERE status = 'ready'

-- The durable queue and the processes that serve it.

CREATE TABLE jobs (
  id UUID NOT NULL PRIMARY KEY,
  kind TEXT COLLATE "C" NOT NULL,
  dedup_key TEXT COLLATE "C" NOT NULL,
  payload TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL CHECK (status IN ('ready', 'running', 'done', 'failed', 'cancelled')),
  run_at BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  max_attempts BIGINT NOT NULL,
  deadline BIGINT,
  lease_until BIGINT,
  lease_owner TEXT COLLATE "C",
  last_error TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
)

CREATE UNIQUE INDEX jobs_live ON jobs (kind, dedup_key) WHERE status IN ('ready', 'running')

CREATE INDEX jobs_status_run_at ON jobs (status, run_at)

CREATE INDEX jobs_leases ON jobs (lease_until) WHERE status = 'running'

CREATE INDEX jobs_status_updated_at ON jobs (status, updated_at)

CREATE INDEX jobs_kind_status ON jobs (kind, status)

CREATE INDEX jobs_dedup_key ON jobs (dedup_key)

CREATE TABLE workers (
  owner TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  roles TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  started_at BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL
)

CREATE INDEX workers_last_seen_at ON workers (last_seen_at)

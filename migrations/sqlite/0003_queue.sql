-- The durable queue and the processes that serve it.

CREATE TABLE jobs (
  id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
  kind TEXT NOT NULL,
  dedup_key TEXT NOT NULL,
  payload TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('ready', 'running', 'done', 'failed', 'cancelled')),
  run_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  deadline INTEGER,
  lease_until INTEGER,
  lease_owner TEXT,
  last_error TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT

CREATE UNIQUE INDEX jobs_live ON jobs (kind, dedup_key) WHERE status IN ('ready', 'running')

CREATE INDEX jobs_status_run_at ON jobs (status, run_at)

CREATE INDEX jobs_leases ON jobs (lease_until) WHERE status = 'running'

CREATE INDEX jobs_status_updated_at ON jobs (status, updated_at)

CREATE INDEX jobs_kind_status ON jobs (kind, status)

CREATE INDEX jobs_dedup_key ON jobs (dedup_key)

CREATE TABLE workers (
  owner TEXT NOT NULL PRIMARY KEY,
  roles TEXT NOT NULL,
  version TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL
) STRICT

CREATE INDEX workers_last_seen_at ON workers (last_seen_at)

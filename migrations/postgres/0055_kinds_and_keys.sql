-- The jobs of a kind and those of a key are found by one index. Most jobs write two entries of each.

CREATE INDEX jobs_kind_dedup_key ON jobs (kind, dedup_key)

DROP INDEX jobs_dedup_key

DROP INDEX jobs_kind_status

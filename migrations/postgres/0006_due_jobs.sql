-- What a claim reads: the due rows in the order they are taken, however many have become due in one second.

CREATE INDEX jobs_due ON jobs (run_at, id) WHERE status = 'ready'

DROP INDEX jobs_status_run_at

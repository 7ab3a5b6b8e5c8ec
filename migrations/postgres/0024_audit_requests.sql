-- The rows of the trail by the request that caused them, which were found by reading all rows.

CREATE INDEX audit_log_request_id ON audit_log (request_id, created_at) WHERE request_id IS NOT NULL

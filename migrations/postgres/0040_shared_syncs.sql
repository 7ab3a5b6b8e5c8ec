-- 1: the process shares syncs of the write-ahead file with others, and tells nothing before its sync. 0: each of its
-- commits syncs, or the database is on a server. NULL: a version before this one.

ALTER TABLE workers ADD COLUMN shares_syncs BIGINT

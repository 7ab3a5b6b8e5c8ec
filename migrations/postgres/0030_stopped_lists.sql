-- The CA whose revocations and lists a worker has stopped, since it cannot read the record of the lists that were issued: its id.

ALTER TABLE profile_states ADD COLUMN stopped_issuer TEXT COLLATE "C"

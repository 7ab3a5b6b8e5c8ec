-- The millisecond of its second in which a nonce was made. NULL: a version before this one made it.

ALTER TABLE nonces ADD COLUMN created_millisecond INTEGER

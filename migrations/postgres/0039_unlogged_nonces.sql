-- Nonces are not written to the WAL: no spent nonce waits for the disk or for a standby. After a crash or on a promoted
-- standby the table is empty, so a nonce of before is never good again, and clients take a new one (badNonce).
ALTER TABLE nonces SET UNLOGGED;

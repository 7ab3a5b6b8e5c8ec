-- What was revoked since a moment is looked for after every list; without this that is a walk through all of an issuer's rows.

CREATE INDEX revocations_issuer_revoked_at ON revocations (issuer, revoked_at)

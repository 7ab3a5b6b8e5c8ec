-- Whether each worker can sign for each profile that it serves: `trouble` is why not, in a sentence for operators.

CREATE TABLE profile_states (
  profile TEXT NOT NULL,
  owner TEXT NOT NULL,
  trouble TEXT,
  since INTEGER NOT NULL,
  PRIMARY KEY (profile, owner)
) STRICT, WITHOUT ROWID

CREATE INDEX profile_states_owner ON profile_states (owner)

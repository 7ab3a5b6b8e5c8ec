-- Whether each worker can sign for each profile that it serves: `trouble` is why not, in a sentence for operators.

CREATE TABLE profile_states (
  profile TEXT COLLATE "C" NOT NULL,
  owner TEXT COLLATE "C" NOT NULL,
  trouble TEXT COLLATE "C",
  since BIGINT NOT NULL,
  PRIMARY KEY (profile, owner)
)

CREATE INDEX profile_states_owner ON profile_states (owner)

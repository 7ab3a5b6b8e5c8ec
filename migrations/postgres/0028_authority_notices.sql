-- What operators of a profile were last told of the end of its CA: which end, and with how many days left at most. A CA that is
-- renewed for the same key has another end, and is told of anew.

CREATE TABLE authority_notices (
  profile TEXT COLLATE "C" NOT NULL,
  issuer TEXT COLLATE "C" NOT NULL,
  not_after BIGINT NOT NULL,
  days BIGINT NOT NULL,
  PRIMARY KEY (profile, issuer)
)

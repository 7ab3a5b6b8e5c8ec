-- What operators of a profile were last told of the end of its CA: which end, and with how many days left at most. A CA that is
-- renewed for the same key has another end, and is told of anew.

CREATE TABLE authority_notices (
  profile TEXT NOT NULL,
  issuer TEXT NOT NULL,
  not_after INTEGER NOT NULL,
  days INTEGER NOT NULL,
  PRIMARY KEY (profile, issuer)
) STRICT

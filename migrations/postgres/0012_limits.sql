-- New accounts are counted by the network they came from: the /24 of an IPv4 address, the /48 of an IPv6 one.

ALTER TABLE accounts ADD COLUMN created_network TEXT COLLATE "C"

CREATE INDEX accounts_profile_created_network ON accounts (profile, created_network, created_at)
  WHERE created_network IS NOT NULL

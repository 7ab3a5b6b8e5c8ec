-- How many renewal windows begin in each hour (hours since 1970), and the window of a certificate: epoch seconds, NULL where its life alone says when.

CREATE TABLE renewal_hours (
  hour BIGINT NOT NULL PRIMARY KEY,
  windows BIGINT NOT NULL
)

ALTER TABLE orders ADD COLUMN renews_at BIGINT

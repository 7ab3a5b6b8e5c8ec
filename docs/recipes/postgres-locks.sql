-- Who waits for whom in this database, and what both are at (docs/operate/debugging.md, "Locks of PostgreSQL").
SELECT
  waits.pid AS waits,
  round(extract(epoch FROM now() - waits.query_start))::int AS for_seconds,
  left(waits.query, 200) AS statement,
  holds.pid AS holds,
  holds.application_name AS holder,
  holds.client_addr AS holder_address,
  holds.state AS holder_state,
  round(extract(epoch FROM now() - holds.xact_start))::int AS holder_seconds,
  left(holds.query, 200) AS holder_last_statement
FROM pg_stat_activity AS waits
CROSS JOIN LATERAL unnest(pg_blocking_pids(waits.pid)) AS blocking (pid)
JOIN pg_stat_activity AS holds ON holds.pid = blocking.pid
WHERE waits.datname = current_database()
ORDER BY for_seconds DESC

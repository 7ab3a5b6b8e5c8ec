import type { PostgresClient } from "./PostgresClient.ts"

/* Finds out whether a proxy before PostgreSQL keeps a session for each connection. */

/** SQL for the id of the server's process, as `pid`. A proxy tells its clients another id than the server does. */
export const askProcess = `pg_backend_pid() AS "pid"`

/** The message about a proxy that keeps no sessions. No later attempt can succeed. */
export const notKept = "a proxy before the server keeps no session for a connection: it pools transactions"

const ask = async (client: PostgresClient, column: string, millis: number | undefined): Promise<unknown> => {
  const asked = { text: `SELECT ${column} AS "value"`, query_timeout: millis }
  const { rows: [row] } =
    await (client.query(asked) as Promise<{ readonly rows: ReadonlyArray<{ readonly value: unknown }> }>)
  return row?.value
}

const read = "current_setting('acme_svc.session', true)"
const write = (value: string) => `set_config('acme_svc.session', '${value}', false)`

/**
 * Returns whether two connections have a session each. A value that one connection sets must be there when it asks
 * again, and must not be seen over the other connection. A proxy that pools transactions usually gives the same session
 * to both, one after the other. While other clients use such a proxy, it may seem to keep sessions. `millis` is the
 * time limit of each statement.
 */
export const isSessionKept = async (
  one: PostgresClient,
  other: PostgresClient,
  millis: number | undefined
): Promise<boolean> => {
  const mark = String(one.processID)
  await ask(one, write(mark), millis)
  const seen = await ask(other, read, millis)
  const kept = await ask(one, read, millis)
  await ask(one, write(""), millis)
  return kept === mark && seen !== mark
}

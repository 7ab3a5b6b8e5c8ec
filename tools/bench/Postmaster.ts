import { Client } from "pg"
import type { PostgresCluster } from "../../test/support/Postgres.ts"
import * as Procfs from "./Procfs.ts"

/** The parent of a PostgreSQL cluster's processes. */
export interface Postmaster {
  readonly pid: number
  /** The number of the next transaction that writes. */
  readonly nextTransaction: () => Promise<number>
  readonly leave: () => Promise<void>
}

/** Finds the process; `leave` closes the connection that was needed. */
export const postmasterOf = async (cluster: PostgresCluster): Promise<Postmaster> => {
  const client = new Client({ connectionString: cluster.adminUrl })
  await client.connect()
  const one = async (sql: string): Promise<number> => {
    const { rows } = await client.query<{ readonly value: string | number }>(sql)
    return Number(rows[0]?.value)
  }
  const pid = Procfs.parentOf(await one("SELECT pg_backend_pid() AS value"))
  return {
    pid,
    nextTransaction: () => one("SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS value"),
    leave: () => client.end()
  }
}

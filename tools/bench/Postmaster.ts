import { Client } from "pg"
import type { PostgresCluster } from "../../test/support/Postgres.ts"
import * as Procfs from "./Procfs.ts"

/** The parent of all processes of a PostgreSQL cluster. */
export interface Postmaster {
  readonly pid: number
  /** The number of the next transaction that writes. */
  readonly nextTransaction: () => Promise<number>
  /** What has been written to the WAL so far, and how often it was synced. */
  readonly wal: () => Promise<{ readonly bytes: number; readonly syncs: number }>
  readonly leave: () => Promise<void>
}

/** Finds the parent process. `leave` closes the connection over which the figures are read. */
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
    // Other sessions add their counts only when they are idle.
    wal: async () => ({
      bytes: await one("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS value"),
      syncs: await one("SELECT sum(fsyncs) AS value FROM pg_stat_io WHERE object = 'wal'")
    }),
    leave: () => client.end()
  }
}

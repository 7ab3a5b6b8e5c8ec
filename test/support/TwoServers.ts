import type { Forwarder } from "./Forwarder.ts"
import { startForwarder, through } from "./Forwarder.ts"
import { sqlAt } from "./OpenDatabase.ts"
import type { PostgresCluster, PostgresFollower } from "./Postgres.ts"
import { startPostgres } from "./Postgres.ts"

/* Two PostgreSQL servers, one of which follows the other and takes over. */

const portOf = (url: string, port: number): string => through(url, { port })

/** Makes a server read-only, even for sessions that are open. */
export const readsOnly = ["ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"]

/** A server that accepts writes, a server that follows it, and an address that is forwarded to the first. */
export interface TwoServers {
  readonly primary: PostgresCluster
  readonly follower: PostgresFollower
  readonly address: Forwarder
  /** The database through the address. */
  readonly url: string
  /** The database at each server. */
  readonly at: { readonly primary: string; readonly follower: string }
  readonly dispose: () => Promise<void>
}

/** Starts two servers and the address. The database is empty. */
export const startTwoServers = async (): Promise<TwoServers> => {
  const primary = await startPostgres({ followed: true })
  const database = await primary.createDatabase()
  const follower = await primary.follower()
  const address = await startForwarder(primary.port)
  return {
    primary,
    follower,
    address,
    url: through(database, address),
    at: { primary: database, follower: portOf(database, follower.port) },
    dispose: async () => {
      await address.stop()
      await follower.stop()
      await primary.stop()
    }
  }
}

/** Makes the first server read-only, and lets the second one accept writes. No connection is cut. */
export const switchOver = async ({ at, follower }: TwoServers): Promise<void> => {
  await sqlAt(at.primary, "ALTER SYSTEM SET synchronous_standby_names = ''")
  for (const statement of readsOnly) await sqlAt(at.primary, statement)
  await follower.promote()
}

/** Returns how many connections of the service a server has. */
export const connectionsAt = async (url: string): Promise<number> => {
  const rows = await sqlAt(
    url,
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
  )
  return rows.length
}

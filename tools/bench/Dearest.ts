import { Client, escapeIdentifier } from "pg"
import type { PostgresCluster } from "../../test/support/Postgres.ts"

/*
 * Measures which statements take most of PostgreSQL's time, with the server's own extension pg_stat_statements. The
 * times include waits for locks, but not the work of a commit, because the extension stops its clock before that.
 */

/** What the server has counted of one statement. Times are in milliseconds. */
export interface Counted {
  readonly text: string
  readonly calls: number
  readonly millis: number
  readonly rows: number
}

/** The statements that took most of the server's execution time. */
export interface Dearest {
  /** Milliseconds of execution per issuance, of all statements together. */
  readonly millis: number
  readonly list: ReadonlyArray<{
    readonly text: string
    /** The share of the execution time of all statements. */
    readonly share: number
    readonly callsPerIssuance: number
    readonly meanMillis: number
    readonly rowsPerIssuance: number
  }>
}

const most = 10

/** Chooses the statements that took most of the time. */
export const dearestOf = (counted: ReadonlyArray<Counted>, issuances: number): Dearest => {
  const total = counted.reduce((sum, { millis }) => sum + millis, 0)
  return {
    millis: total / issuances,
    list: counted.toSorted((one, other) => other.millis - one.millis).slice(0, most).map((
      { calls, millis, rows, text }
    ) => ({
      text: text.replaceAll(/\s+/g, " ").trim(),
      share: millis / total,
      callsPerIssuance: calls / issuances,
      meanMillis: millis / calls,
      rowsPerIssuance: rows / issuances
    }))
  }
}

/** Counts the statements of one database. */
export interface Counter {
  readonly reset: () => Promise<void>
  readonly read: () => Promise<ReadonlyArray<Counted>>
  readonly leave: () => Promise<void>
}

/**
 * Makes the server count the statements of sessions that are opened in a database from now on. The server must be
 * started with `countsStatements`. Other sessions, such as the sessions of the bench, are not counted.
 */
export const countIn = async (cluster: PostgresCluster, databaseUrl: string): Promise<Counter> => {
  const client = new Client({ connectionString: cluster.adminUrl })
  await client.connect()
  const database = escapeIdentifier(new URL(databaseUrl).pathname.slice(1))
  await client.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
  await client.query(`ALTER DATABASE ${database} SET pg_stat_statements.track = 'top'`)
  return {
    reset: async () => {
      await client.query("SELECT pg_stat_statements_reset()")
    },
    read: async () => {
      const { rows } = await client.query<Counted>(
        `SELECT query AS text, calls::float8 AS calls, total_exec_time AS millis, rows::float8 AS rows
         FROM pg_stat_statements`
      )
      return rows
    },
    leave: () => client.end()
  }
}

import { afterAll, beforeAll } from "vitest"
import type { PostgresCluster } from "./Postgres.ts"
import { startPostgres } from "./Postgres.ts"

/** A PostgreSQL server of a test file, with its administrator as a person knows it: a URL, and a password apart. */
export interface OwnPostgres {
  readonly cluster: () => PostgresCluster
  readonly password: () => string
  /** Returns the URL of a user without a password, by default that of the administrator. */
  readonly urlOf: (user?: string, database?: string) => string
}

/** Starts a PostgreSQL server for a test file that makes roles, because roles belong to a whole server. */
export const useOwnPostgres = (): OwnPostgres => {
  let started: PostgresCluster | undefined
  beforeAll(async () => {
    started = await startPostgres()
  })
  afterAll(() => started?.stop())
  const cluster = () => {
    if (started === undefined) throw new Error("the server runs only while tests run")
    return started
  }
  return {
    cluster,
    password: () => decodeURIComponent(new URL(cluster().adminUrl).password),
    urlOf: (user = "postgres", database = "postgres") => {
      const url = new URL(cluster().url(database))
      url.username = user
      url.password = ""
      return url.href
    }
  }
}

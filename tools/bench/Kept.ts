import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import type { PostgresCluster } from "../../test/support/Postgres.ts"
import { startPostgres } from "../../test/support/Postgres.ts"
import type { BusyPopulation } from "./Busy.ts"
import { populateBusy } from "./Busy.ts"
import { temporaryDirectory } from "./Cleanup.ts"
import type { Forked } from "./Forked.ts"
import type { load } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import { revoke } from "./Populate.ts"
import type { ServiceOptions } from "./Service.ts"
import { configured, migrate, startService } from "./Service.ts"
import type { Dialect } from "./Statements.ts"

/* Makes the grown databases that `lists` and `pages` read. An option keeps these databases for a later run. */

/** Where a database is. */
export interface Place {
  readonly directory: string
  readonly cluster: PostgresCluster | undefined
  readonly databaseUrl: string
  /** A file or a URL. */
  readonly where: string
}

const databaseName = "lists"

/** Makes a place for a database below `keep`, or in a directory that is removed at the end. */
export const placeOf = async (name: Dialect, keep: string | undefined): Promise<Place> => {
  const root = keep === undefined ? temporaryDirectory() : resolve(keep)
  const directory = join(root, name)
  mkdirSync(directory, { recursive: true })
  chmodSync(root, 0o755) // PostgreSQL may run as another user
  if (!existsSync(join(directory, "config.toml"))) configured(directory)
  if (name === "sqlite") {
    return { directory, cluster: undefined, databaseUrl: "sqlite://bench.db", where: join(directory, "bench.db") }
  }
  const kept = join(root, "postgres-data")
  mkdirSync(kept, { recursive: true })
  const cluster = await startPostgres({ durable: true, kept })
  const databaseUrl = cluster.url(databaseName)
  if (!existsSync(join(directory, "filled"))) await cluster.createDatabase(databaseName)
  return { directory, cluster, databaseUrl, where: databaseUrl }
}

/**
 * Starts the service, makes one issuance, and returns the certificate. This also records the CA in the database,
 * without which revocations cannot be added.
 */
const firstCertificate = async (options: ServiceOptions, loader: Forked<typeof load>): Promise<string> => {
  const service = await startService(options)
  await loader.call("target", service.directoryUrl)
  const exchanges = await loader.call("sample")
  await service.stop()
  return exchanges.findLast(({ kind }) => kind === "certificate")?.answer.body ?? ""
}

/** The contents of a database. */
interface Filled {
  readonly population: BusyPopulation
  /** How long it took to fill the database, or undefined if an earlier run filled it. */
  readonly builtSeconds: number | undefined
}

/** Fills the database, unless an earlier run has filled it. Returns the numbers of rows. */
export const fillOnce = async (
  name: Dialect,
  { directory, where }: Place,
  wanted: BusyPopulation,
  options: ServiceOptions,
  loader: Forked<typeof load>,
  progress: Progress
): Promise<Filled> => {
  const mark = join(directory, "filled")
  if (existsSync(mark)) {
    return { population: JSON.parse(readFileSync(mark, "utf8")) as BusyPopulation, builtSeconds: undefined }
  }
  const begun = performance.now()
  migrate({ ...options, directory })
  const certificate = await firstCertificate(options, loader)
  await populateBusy(name, where, wanted, certificate, progress)
  await revoke(name, where, { revocations: Math.round(wanted.orders / 200) })
  writeFileSync(mark, JSON.stringify(wanted))
  return { population: wanted, builtSeconds: (performance.now() - begun) / 1000 }
}

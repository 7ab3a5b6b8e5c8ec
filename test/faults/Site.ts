import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { World } from "../support/Ground.ts"
import { startWorld } from "../support/Ground.ts"
import type { Http01ResponderOptions } from "../support/Http01Responder.ts"
import type { Server, ServerOptions } from "../support/Server.ts"
import { startServer } from "../support/Server.ts"

/** The databases a fault can be tried on. */
export type DatabaseName = "SQLite" | "PostgreSQL"

/** How the service is laid out. */
export interface SiteOptions {
  /** By default, a separate SQLite file. */
  readonly databaseUrl?: string
  /** The number of worker processes, beside one process that serves. By default one process does everything. */
  readonly workers?: number
  readonly tls?: boolean
  readonly env?: Readonly<Record<string, string>>
  /**
   * Variables for one of its processes, in addition to `env`. If there are several processes, the first is the one that
   * serves.
   */
  readonly envOf?: (index: number) => Readonly<Record<string, string>>
  /** The directory with the configuration, keys, and the SQLite file; a temporary one when not given. */
  readonly home?: string
  /** The text of `config.toml`. With `null`, the file that already exists stays. */
  readonly config?: string | null
  readonly web?: Http01ResponderOptions
  /** The folder of the build that its processes start with; the folder of the sources if not given. */
  readonly build?: string
  /** Whether its processes run the build or the sources; the build if not given. */
  readonly from?: ServerOptions["from"]
  /** A change of the database before the service starts. */
  readonly prepare?: (databaseUrl: string, directory: string) => Promise<void>
}

/** A running service of one process or several, with its world. */
export interface Site {
  readonly world: World
  readonly databaseUrl: string
  /** When its processes were started, by this process's clock. */
  readonly begun: number
  /** The process that serves ACME clients. */
  readonly acme: Server
  /** The processes that run jobs; the process that serves, if there is only one. */
  readonly workers: ReadonlyArray<Server>
  readonly processes: ReadonlyArray<Server>
  /** Starts one more process, which serves at the address of {@link acme}. */
  readonly beside: (options: ServerOptions) => Promise<Server>
  /** Ends the processes; databases and files stay until {@link dispose}. */
  readonly stop: () => Promise<void>
  readonly dispose: () => Promise<void>
}

// Settings with which validations end soon and are soon repeated.
const haste = {
  ACME_SVC_CHALLENGE__TIMEOUT_MS: "2000",
  ACME_SVC_JOBS__RETRY_BASE_SECONDS: "1",
  ACME_SVC_JOBS__POLL_INTERVAL_MS: "500"
}

/** Starts a service with its world. */
export const startSite = async (options: SiteOptions): Promise<Site> => {
  const directory = options.home ?? mkdtempSync(join(tmpdir(), "acme-faults-"))
  const databaseUrl = options.databaseUrl ?? `sqlite://${join(directory, "acme.db")}`
  const processes: Array<Server> = []
  const begun = performance.now()
  const world = await startWorld(options.web)
  const stop = async () => {
    // A process that is stopped would not notice the signal to end.
    for (const server of processes) server.signal("SIGCONT")
    await Promise.all(processes.map((server) => server.stop()))
  }
  const dispose = async () => {
    await stop()
    await world.stop()
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
  }
  const start = async (home: string, index: number, more: ServerOptions = {}): Promise<Server> => {
    const server = await startServer({
      databaseUrl,
      directory: home,
      env: { ...world.env, ...haste, ...options.env, ...options.envOf?.(index) },
      ...options.config === undefined ? {} : { config: options.config },
      ...options.tls === undefined ? {} : { tls: options.tls },
      ...options.from === undefined ? {} : { from: options.from },
      ...options.build === undefined ? {} : { build: options.build },
      ...more
    })
    processes.push(server)
    return server
  }
  const besideOf = ({ directory: home, port }: Server) => (more: ServerOptions) => start(home, 0, { ...more, port })
  try {
    await options.prepare?.(databaseUrl, directory)
    if (options.workers === undefined) {
      const acme = await start(directory, 0)
      return { world, databaseUrl, begun, acme, workers: [acme], processes, beside: besideOf(acme), stop, dispose }
    }
    const workers: Array<Server> = []
    for (let index = 0; index < options.workers; index++) {
      workers.push(await start(directory, index + 1, { flags: ["--role", "worker"], startedBy: "job_runner_started" }))
    }
    const front = join(directory, "front")
    mkdirSync(front)
    copyFileSync(join(directory, "ca.pem"), join(front, "ca.pem"))
    const acme = await start(front, 0, { flags: ["--role", "acme"] })
    return { world, databaseUrl, begun, acme, workers, processes, beside: besideOf(acme), stop, dispose }
  } catch (error) {
    await dispose()
    throw error
  }
}

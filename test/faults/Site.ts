import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { World } from "../support/Ground.ts"
import { startWorld } from "../support/Ground.ts"
import type { Http01ResponderOptions } from "../support/Http01Responder.ts"
import { freePort } from "../support/Ports.ts"
import type { Server, ServerOptions } from "../support/Server.ts"
import { startServer } from "../support/Server.ts"

/** The databases on which a fault can be tested. */
export type DatabaseName = "SQLite" | "PostgreSQL"

/** The processes and files of the service. */
export interface SiteOptions {
  /** The database, by default a separate SQLite file. */
  readonly databaseUrl?: string
  /** The number of worker processes in addition to those that serve. By default, one process has all roles. */
  readonly workers?: number
  /** The number of processes that serve in addition to workers, each at a port of its own, by default one. */
  readonly fronts?: number
  /** Whether each worker has its own directory, as on its own host, with the same CA. */
  readonly areApart?: boolean
  /** Whether there is also a process for operators. */
  readonly hasAdmin?: boolean
  readonly tls?: boolean
  readonly env?: Readonly<Record<string, string>>
  /**
   * Variables for one of its processes, in addition to `env`. If there are several processes, the first is the one that
   * serves.
   */
  readonly envOf?: (index: number) => Readonly<Record<string, string>>
  /** The directory with the configuration, the keys and the SQLite file, by default a temporary one. */
  readonly home?: string
  /** The text of `config.toml`. With `null`, the file that already exists is used. */
  readonly config?: string | null
  readonly web?: Http01ResponderOptions
  /** The folder of the build from which the processes start, by default the folder of the sources. */
  readonly build?: string
  /** Whether the processes run the build or the sources, by default the build. */
  readonly from?: ServerOptions["from"]
  /** The certificates of the CAs that take over, by default none. */
  readonly otherCaFiles?: ReadonlyArray<string>
  /** Changes the database before the service starts. */
  readonly prepare?: (databaseUrl: string, directory: string) => Promise<void>
}

/** A running service of one or several processes, with its name server and its responder. */
export interface Site {
  readonly world: World
  readonly databaseUrl: string
  /** The certificates of the CAs that take over. */
  readonly otherCaFiles: ReadonlyArray<string>
  /** When the processes were started, by the clock of this process. */
  readonly begun: number
  /** The process that serves ACME clients, or the first of several. */
  readonly acme: Server
  /** Every process that serves ACME clients. */
  readonly fronts: ReadonlyArray<Server>
  /** The processes that run jobs, or the process that serves if there are no others. */
  readonly workers: ReadonlyArray<Server>
  readonly processes: ReadonlyArray<Server>
  /** Starts one more process that serves at the address of {@link acme}. */
  readonly beside: (options: ServerOptions) => Promise<Server>
  /** Ends the processes. Databases and files stay until {@link dispose}. */
  readonly stop: () => Promise<void>
  readonly dispose: () => Promise<void>
}

// Settings with which validations end soon and are repeated soon.
const haste = {
  ACME_SVC_CHALLENGE__TIMEOUT_MS: "2000",
  ACME_SVC_JOBS__RETRY_BASE_SECONDS: "1",
  ACME_SVC_JOBS__POLL_INTERVAL_MS: "500"
}

/** Starts a service with its world. */
export const startSite = async (options: SiteOptions): Promise<Site> => {
  const directory = options.home ?? mkdtempSync(join(tmpdir(), "acme-faults-"))
  const databaseUrl = options.databaseUrl ?? `sqlite://${join(directory, "acme.db")}`
  const { otherCaFiles = [] } = options
  const processes: Array<Server> = []
  const begun = performance.now()
  const world = await startWorld(options.web)
  const stop = async () => {
    // A stopped process would not notice the signal to end.
    for (const server of processes) server.signal("SIGCONT")
    await Promise.all(processes.map((server) => server.stop()))
  }
  const dispose = async () => {
    await stop()
    await world.stop()
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
  }
  const start = async (
    home: string,
    index: number,
    more: ServerOptions = {},
    env: Readonly<Record<string, string>> = {}
  ): Promise<Server> => {
    const server = await startServer({
      databaseUrl,
      directory: home,
      env: { ...world.env, ...haste, ...options.env, ...options.envOf?.(index), ...env },
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
      const alone = { acme, fronts: [acme], workers: [acme] }
      return { world, databaseUrl, otherCaFiles, begun, ...alone, processes, beside: besideOf(acme), stop, dispose }
    }
    /** Makes a directory for one process, with these files of the first worker. */
    const place = (name: string, files: ReadonlyArray<string>): string => {
      const own = join(directory, name)
      mkdirSync(own)
      for (const file of files) copyFileSync(join(directory, file), join(own, file))
      return own
    }
    const workers: Array<Server> = []
    for (let index = 0; index < options.workers; index++) {
      const home = options.areApart === true && index > 0 ? place(`worker${index}`, ["ca.pem", "ca.key"]) : directory
      workers.push(await start(home, index + 1, { flags: ["--role", "worker"], startedBy: "job_runner_started" }))
    }
    const fronts: Array<Server> = []
    for (let index = 0; index < (options.fronts ?? 1); index++) {
      const home = place(`front${index}`, ["ca.pem"])
      // The processes are one service, so the URLs of its resources have one address.
      const env = fronts[0] === undefined ? {} : { ACME_SVC_SERVER__BASE_URL: fronts[0].baseUrl }
      fronts.push(await start(home, index === 0 ? 0 : options.workers + index, { flags: ["--role", "acme"] }, env))
    }
    const [acme] = fronts
    if (acme === undefined) throw new Error("nobody serves")
    if (options.hasAdmin === true) {
      const address = `127.0.0.1:${await freePort()}`
      await start(place("admin", ["ca.pem"]), processes.length, {
        flags: ["--role", "admin"],
        startedBy: "admin_listening"
      }, {
        ACME_SVC_ADMIN__ENABLED: "true",
        ACME_SVC_ADMIN__BIND_ADDRESS: address,
        ACME_SVC_ADMIN__BASE_URL: `http://${address}`
      })
    }
    return {
      world,
      databaseUrl,
      otherCaFiles,
      begun,
      acme,
      fronts,
      workers,
      processes,
      beside: besideOf(acme),
      stop,
      dispose
    }
  } catch (error) {
    await dispose()
    throw error
  }
}

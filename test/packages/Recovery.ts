import { randomBytes } from "node:crypto"
import { appendFileSync, chmodSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "pg"
import type { Foreground } from "../interop/Command.ts"
import { runCommand, startForeground } from "../interop/Command.ts"
import { AcmeSession } from "../support/AcmeSession.ts"
import { bodiesOf } from "../support/Documents.ts"
import { freePort } from "../support/Ports.ts"
import { minimalConfig, runToEnd, startServer } from "../support/Server.ts"
import type { Installation, Site } from "./Installation.ts"
import { check } from "./Installation.ts"
import { recoveryLines } from "./Lines.ts"

/*
 * Does what docs/operate/backup-and-restore.md says about PostgreSQL with Debian's programs: a dump, and a base backup
 * with archived WAL that is restored to a point in time. These are the programs that an operator has, which the server
 * of the other tests lacks.
 */

const debians = "/usr/lib/postgresql"

/** Returns where the newest server of this machine has its programs. */
const programs = (): string => {
  const [newest] = readdirSync(debians).sort((one, other) => Number(other) - Number(one))
  return join(debians, newest ?? "", "bin")
}

/** Returns the settings of the document that contain a given word. */
const settingsWith = (word: string): string => {
  const [found, ...others] = bodiesOf("docs/operate/backup-and-restore.md", "text").filter((body) =>
    body.includes(word)
  )
  if (found === undefined || others.length > 0) {
    throw new Error(`docs/operate/backup-and-restore.md has no settings, or several, of ${word}`)
  }
  return found
}

const said = /recovery_target_time = '([^']+)'/

/** The user for PostgreSQL if this process is root, because PostgreSQL does not run as root. */
const asUser = process.getuid?.() === 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []

/** A PostgreSQL server of Debian, with its folder instead of the document's `/backup`. */
class Cluster {
  readonly port: number
  private readonly home: string
  private readonly password = randomBytes(12).toString("hex")
  private running: Foreground | undefined

  private constructor(home: string, port: number) {
    this.home = home
    this.port = port
  }

  static async make(home: string): Promise<Cluster> {
    mkdirSync(home)
    chmodSync(home, 0o777)
    const cluster = new Cluster(home, await freePort())
    await cluster.run("mkdir --parents backup/wal")
    writeFileSync(join(home, "password"), cluster.password)
    await cluster.run(`initdb --pgdata=data --username=postgres --pwfile=password --auth=scram-sha-256 --encoding=UTF8`)
    return cluster
  }

  /** Runs a shell line as the server's user, who is a superuser of the database, in the server's folder. */
  run(line: string): Promise<string> {
    const env = {
      PATH: `${programs()}:${process.env["PATH"]}`,
      PGHOST: "127.0.0.1",
      PGPORT: `${this.port}`,
      PGUSER: "postgres",
      PGPASSWORD: this.password
    }
    const [program = "sh", ...words] = [...asUser, "sh", "-euc", this.here(line)]
    return runCommand(program, words, { cwd: this.home, env })
  }

  private here(text: string): string {
    return text.replaceAll("/backup/", `${this.home}/backup/`)
  }

  url(database: string, user = "acme"): string {
    return `postgres://${user}:${this.password}@127.0.0.1:${this.port}/${database}`
  }

  async ask(statement: string): Promise<string> {
    const client = new Client({ connectionString: this.url("postgres", "postgres") })
    await client.connect()
    try {
      const { rows: [row] } = await client.query<Record<string, string>>(statement)
      return Object.values(row ?? {})[0] ?? ""
    } finally {
      await client.end()
    }
  }

  /** Adds settings of the document to the settings of a data folder. */
  set(data: string, settings: string): void {
    appendFileSync(join(this.home, data, "postgresql.auto.conf"), this.here(settings))
  }

  /** Starts the server on a data folder. A recovering server is ready when it accepts writes. */
  async start(data: string): Promise<void> {
    const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories="]
    const words = ["-D", join(this.home, data), "-p", `${this.port}`, ...settings.flatMap((one) => ["-c", one])]
    const [program = "", ...rest] = [...asUser, join(programs(), "postgres"), ...words]
    this.running = await startForeground(program, rest, { cwd: this.home, ready: /ready to accept connections$/ })
  }

  /** Stops the server when everything is archived, for which the server closes its last segment. */
  async stop(): Promise<void> {
    this.running?.signal("SIGINT")
    await this.running?.ended()
    this.running = undefined
  }

  async makeDatabase(): Promise<void> {
    await this.ask(`CREATE ROLE acme LOGIN PASSWORD '${this.password}'`)
    await this.ask("CREATE DATABASE acme OWNER acme")
  }
}

const config = `${minimalConfig}[challenge]\nbypass = true\n`

/** Starts the service on a database of the cluster, in a folder that outlives the database. */
const serviceIn = (directory: string) => {
  const issue = async (databaseUrl: string, ...names: ReadonlyArray<string>): Promise<void> => {
    const server = await startServer({ config, directory, databaseUrl })
    try {
      const session = await AcmeSession.open(server.directoryUrl)
      await session.register()
      for (const name of names) await session.issue([name], new Map())
      session.close()
    } finally {
      await server.stop()
    }
  }
  const asked = async (databaseUrl: string, ...words: ReadonlyArray<string>): Promise<string> => {
    const env = { ACME_SVC_DATABASE__URL: databaseUrl }
    const { code, stderr, stdout } = await runToEnd(words, { config: null, directory, env })
    check(code === 0, `acme-svc ${words.join(" ")} ended with ${code}: ${stderr}`)
    return stdout
  }
  /** Returns the first labels of the names that have orders. */
  const known = async (databaseUrl: string): Promise<string> => {
    await asked(databaseUrl, "migrate", "--check")
    const orders = await asked(databaseUrl, "order", "list", "--json")
    return [...new Set([...orders.matchAll(/(\w+)\.recovery\.example/g)].map(([, label]) => label))].sort().join(" ")
  }
  return { issue, known }
}

const nameOf = (label: string): string => `${label}.recovery.example`

const play = async ({ directory, say, step }: Site): Promise<void> => {
  const home = join(directory, "service")
  mkdirSync(home)
  const { issue, known } = serviceIn(home)
  const cluster = await Cluster.make(join(directory, "cluster"))
  try {
    cluster.set("data", settingsWith("archive_mode"))
    await cluster.start("data")
    await cluster.makeDatabase()
    say(`PostgreSQL recovery: ${(await cluster.ask("SELECT version()")).split(" (", 1)[0]}`)
    await issue(cluster.url("acme"), nameOf("first"))
    await step("restores a dump into an empty database", async () => {
      await cluster.run(recoveryLines.dump)
      await issue(cluster.url("acme"), nameOf("second"))
      await cluster.run(recoveryLines.create)
      await cluster.run(recoveryLines.restore)
      const names = await known(cluster.url("restored"))
      check(names === "first", `the dump has ${names}`)
      await issue(cluster.url("restored"), nameOf("anew"))
    })
    const moment = await step("takes a base backup while the service goes on", async () => {
      await cluster.run(recoveryLines.base)
      await issue(cluster.url("acme"), nameOf("third"))
      const now = await cluster.ask("SELECT clock_timestamp()::text")
      await issue(cluster.url("acme"), nameOf("fourth"))
      await cluster.stop()
      rmSync(join(directory, "cluster/data"), { recursive: true })
      return now
    })
    const recovering = settingsWith("restore_command")
    const recover = async (data: string, settings: string) => {
      await cluster.run(`cp --archive backup/base ${data} && touch ${data}/recovery.signal`)
      // A server distinguishes two histories in one archive by their numbers. Here each recovery has an archive of its
      // own.
      cluster.set(data, `${settings}archive_mode = off\n`)
      await cluster.start(data)
    }
    await step("goes back to a moment", async () => {
      check(said.test(recovering), "docs/operate/backup-and-restore.md names no moment")
      await recover("then", recovering.replace(said, `recovery_target_time = '${moment}'`))
      const names = await known(cluster.url("acme"))
      check(names === "first second third", `at that moment there were ${names}`)
      await issue(cluster.url("acme"), nameOf("anew"))
      await cluster.stop()
    })
    await step("replays everything when no moment is given", async () => {
      await recover("whole", recovering.replace(/^recovery_target_.*\n/gm, ""))
      const names = await known(cluster.url("acme"))
      check(names === "first fourth second third", `at the end there were ${names}`)
      await issue(cluster.url("acme"), nameOf("anew"))
    })
  } finally {
    await cluster.stop()
  }
}

/** Dumps and base backups of PostgreSQL. */
export const recovery: Installation = { name: "PostgreSQL recovery", commands: ["postgresql"], play }

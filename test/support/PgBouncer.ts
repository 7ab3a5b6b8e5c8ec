import type { ChildProcess } from "node:child_process"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { freshDirectory } from "./Databases.ts"
import { through } from "./Forwarder.ts"
import { freePort } from "./Ports.ts"
import { unprivileged } from "./Unprivileged.ts"

/** PgBouncer before a database, in transaction mode. It is stopped by {@link PgBouncer.kill9}. */
export interface PgBouncer {
  /** The URL of the database through the proxy. */
  readonly url: string
  /** Kills the proxy, and waits until it is gone. All its connections are cut. */
  readonly kill9: () => Promise<void>
  /** Starts the proxy again, at the same port. */
  readonly start: () => Promise<void>
}

/** The number of connections that the proxy makes to the server. */
export const poolSize = 4

/** Starts PgBouncer before a database. `more` are further lines of its configuration. */
export const startPgBouncer = async (database: string, more = ""): Promise<PgBouncer> => {
  const { hostname, password, port: serverPort, username } = new URL(database)
  const directory = freshDirectory()
  const port = await freePort()
  const file = join(directory, "pgbouncer.ini")
  writeFileSync(
    file,
    `[databases]
* = host=${hostname} port=${serverPort} user=${username} password=${decodeURIComponent(password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${poolSize}
${more}`
  )
  // Another user reads them.
  chmodSync(directory, 0o755)
  let running: ChildProcess | undefined
  const start = (): Promise<void> =>
    new Promise((done, failed) => {
      const child = spawn("pgbouncer", [file], { ...unprivileged(), cwd: "/", stdio: ["ignore", "ignore", "pipe"] })
      running = child
      let said = ""
      child.stderr.on("data", (chunk: Buffer) => {
        said += chunk.toString()
        if (said.includes("process up")) done()
      })
      child.once("error", failed)
      child.once("exit", () => failed(new Error(`PgBouncer ended: ${said}`)))
    })
  await start()
  return {
    url: through(database, { port }),
    start,
    kill9: async () => {
      const child = running
      running = undefined
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, "exit")
      child.kill("SIGKILL")
      await exited
    }
  }
}

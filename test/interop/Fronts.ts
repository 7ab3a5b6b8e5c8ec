import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { AcmeSession } from "../support/AcmeSession.ts"
import { freePort } from "../support/Ports.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, startServer } from "../support/Server.ts"
import { runCommand, startForeground } from "./Command.ts"
import type { Outcome } from "./Table.ts"

/*
 * Tests docs/recipes/front.nginx.conf: nginx is in front of two acme processes, which are restarted one after the other
 * under load. The recipe is unchanged except for ports and files.
 */

const name = "front nginx"
const host = "acme.example.org"
const recipe = readFileSync(resolve(import.meta.dirname, "../../docs/recipes/front.nginx.conf"), "utf8")
const clients = 6
const rounds = 3

const edited = (edits: ReadonlyArray<readonly [from: string, to: string]>): string =>
  edits.reduce((before, [from, to]) => {
    if (!before.includes(from)) throw new Error(`the recipe has nothing like ${from}`)
    return before.replaceAll(from, to)
  }, recipe)

/**
 * Restarts each process in turn while clients get certificates. Fails at the first answer that a client would see as a
 * failure.
 */
const rolls = async (fronts: ReadonlyArray<Server>, directoryUrl: string): Promise<void> => {
  const state = { isOver: false, issued: 0 }
  const failures: Array<string> = []
  const work = async (nth: number): Promise<void> => {
    const session = await AcmeSession.open(directoryUrl)
    await session.register()
    for (let one = 0; !state.isOver; one++) {
      await session.issue([`h${nth}-${one}.example`], new Map()).then(
        () => state.issued++,
        (error: unknown) => failures.push(String(error))
      )
    }
    session.close()
  }
  const load = Promise.all(Array.from({ length: clients }, (_, nth) => work(nth)))
  try {
    for (let round = 0; round < rounds; round++) {
      for (const front of fronts) {
        const before = state.issued
        await front.restart()
        // Each process serves for a while before the next one restarts.
        while (state.issued < before + clients && failures.length === 0) await delay(20)
      }
    }
  } finally {
    state.isOver = true
  }
  await load
  if (failures.length > 0) {
    throw new Error(`${failures.length} of ${state.issued + failures.length} failed: ${failures[0]}`)
  }
}

const play = async (say: (text: string) => void): Promise<void> => {
  const directory = mkdtempSync(join(tmpdir(), "acme-front-"))
  const [port, one, two] = [await freePort(), await freePort(), await freePort()]
  const baseUrl = `https://127.0.0.1:${port}`
  const config = `${minimalConfig}[challenge]\nbypass = true\n`
  const [key, certificate] = [join(directory, "acme.key"), join(directory, "acme.pem")]
  const made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
  const subject = ["-subj", `/CN=${host}`, "-addext", `subjectAltName=DNS:${host}`]
  await runCommand("openssl", [...made, ...subject, "-keyout", key, "-out", certificate])
  const main = join(directory, "nginx.conf")
  const parts = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
  const own = ["access_log off;", ...parts.map((part) => `${part}_temp_path ${directory}/${part};`)]
  const text = edited([
    ["192.0.2.10:3000", `127.0.0.1:${one}`],
    ["192.0.2.11:3000", `127.0.0.1:${two}`],
    ["    listen [::]:443 ssl;\n", ""],
    ["listen 443 ssl", `listen 127.0.0.1:${port} ssl`],
    ["/etc/ssl/acme.pem", certificate],
    ["/etc/ssl/acme.key", key]
  ])
  const head = ["daemon off;", "error_log stderr notice;", `pid ${directory}/nginx.pid;`, "events {}"]
  writeFileSync(main, [...head, "http {", ...own, text, "}", ""].join("\n"))
  const servers: Array<Server> = []
  const start = async (role: "acme" | "worker", startedBy: string, at?: number): Promise<Server> => {
    const server = await startServer({
      config,
      directory,
      flags: ["--role", role],
      startedBy,
      ...at === undefined ? {} : { port: at },
      env: { ACME_SVC_SERVER__BASE_URL: baseUrl }
    })
    servers.push(server)
    return server
  }
  try {
    await start("worker", "job_runner_started")
    const fronts = [await start("acme", "server_listening", one), await start("acme", "server_listening", two)]
    const words = ["-e", "stderr", "-p", directory, "-c", main]
    const running = await startForeground("nginx", words, { cwd: directory, ready: /start worker process \d/ })
    try {
      await rolls(fronts, `${baseUrl}/profile/default/directory`)
    } finally {
      await running.stop()
    }
  } catch (error) {
    say(`--- ${name}\n${String(error)}\n---`)
    throw error
  } finally {
    for (const server of servers.toReversed()) await server.dispose()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Returns the programs of {@link playFronts}, or none if `isChosen` does not accept its name. */
export const frontCommands = (isChosen: (name: string) => boolean = () => true): ReadonlyArray<string> =>
  isChosen(name) ? ["nginx", "openssl"] : []

/** Plays the recipe for several acme processes. */
export const playFronts = async (
  say: (text: string) => void,
  isChosen: (name: string) => boolean = () => true
): Promise<ReadonlyArray<Outcome>> => {
  if (!isChosen(name)) return []
  const begun = performance.now()
  const error = await play(say).then(() => undefined, (cause: unknown) => String(cause))
  const outcome = {
    database: "SQLite",
    client: name,
    challenge: "",
    scenario: "rolling restart without a failure",
    milliseconds: performance.now() - begun
  }
  return [error === undefined ? outcome : { ...outcome, error }]
}

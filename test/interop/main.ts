import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Entry } from "../support/DnsAnswerer.ts"
import { startDnsAnswerer } from "../support/DnsAnswerer.ts"
import { leafOf, verifyChain } from "../support/Openssl.ts"
import { freePort } from "../support/Ports.ts"
import { startPostgres } from "../support/Postgres.ts"
import type { Server } from "../support/Server.ts"
import { startServer } from "../support/Server.ts"
import type { Client, Workplace } from "./Clients.ts"
import { canTrust, certbot, certbotDns, lego, legoAlpn, legoDns, runCommand, uacme, uacmeDns } from "./Clients.ts"

/*
 * `npm run interop`: certbot, lego and uacme as Debian ships them, each with every challenge it knows through issue, renew
 * and deactivate against the built server, on SQLite and on PostgreSQL. Everything happens on loopback.
 */

const clients: ReadonlyArray<Client> = [certbot, certbotDns, lego, legoDns, legoAlpn, uacme, uacmeDns]
const scenarios = ["issue", "renew", "deactivate"] as const

interface Outcome {
  readonly database: string
  readonly client: string
  readonly scenario: (typeof scenarios)[number]
  readonly milliseconds: number
  readonly error?: string
}

const say = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

const exists = (command: string): Promise<boolean> =>
  runCommand("sh", ["-c", "command -v \"$0\"", command]).then(() => true, () => false)

const install = async (): Promise<void> => {
  const missing: Array<string> = []
  for (const command of new Set(clients.map((client) => client.command))) {
    if (!await exists(command)) missing.push(command)
  }
  if (missing.length === 0) return
  const wanted = missing.join(" ")
  if (process.getuid?.() !== 0 || !await exists("apt-get")) {
    throw new Error(`not installed: ${wanted}. Install them, or run this as root where there is apt-get.`)
  }
  say(`installing ${wanted} with apt-get`)
  const env = { DEBIAN_FRONTEND: "noninteractive" }
  try {
    await runCommand("apt-get", ["update"], { env, timeoutMs: 300_000 })
    const words = ["install", "--yes", "--no-install-recommends", ...missing]
    await runCommand("apt-get", words, { env, timeoutMs: 600_000 })
  } catch (error) {
    throw new Error(`apt-get could not install ${wanted}: ${String(error)}`, { cause: error })
  }
}

/** One scenario and what has to be true after it. */
const play = async (client: Client, scenario: Outcome["scenario"], at: Workplace): Promise<void> => {
  if (scenario === "deactivate") {
    await client.deactivate(at)
    await at.server.waitForEvent("account_deactivated", { timeoutMs: 10_000 })
    return
  }
  const before = scenario === "renew" ? leafOf(client.chain(at)).serialNumber : undefined
  await client[scenario](at)
  const chain = client.chain(at)
  for (const name of at.names) await verifyChain(chain, at.server.caFile, name.replace("*", "below"))
  if (leafOf(chain).serialNumber === before) throw new Error("the certificate was not renewed")
}

const tell = (title: string, error: string, server: Server): void => {
  say(`--- ${title}\n${error}\n--- the server's last records`)
  for (const record of server.records().slice(-15)) say(JSON.stringify(record))
  say(`${server.stderr().slice(-2000)}\n---`)
}

/** All scenarios of one client in turn; what depends on a certificate is not tried without one. */
const playAll = async (client: Client, database: string, at: Workplace): Promise<ReadonlyArray<Outcome>> => {
  const outcomes: Array<Outcome> = []
  for (const scenario of scenarios) {
    const begun = performance.now()
    const reached = outcomes[0]?.error === undefined
    const error: string | undefined = reached
      ? await play(client, scenario, at).then(() => undefined, (cause: unknown) => String(cause))
      : "not reached"
    const outcome = { database, client: client.name, scenario, milliseconds: performance.now() - begun }
    outcomes.push(error === undefined ? outcome : { ...outcome, error })
    if (reached && error !== undefined) tell(`${client.name} ${scenario} on ${database}`, error, at.server)
  }
  return outcomes
}

/** TXT records are files, so that a client's script can write them. */
const lookIn = (zone: string) => (name: string): Entry | undefined =>
  existsSync(join(zone, name)) ? { TXT: readdirSync(join(zone, name)) } : undefined

/** One client on a server and a database of its own. */
const drive = async (
  client: Client,
  database: string,
  url: string | undefined,
  tls: boolean
): Promise<ReadonlyArray<Outcome>> => {
  const home = mkdtempSync(join(tmpdir(), `acme-${client.command}-`))
  const zone = join(home, "zone")
  const [httpPort, alpnPort] = [await freePort(), await freePort()]
  const dns = await startDnsAnswerer({ fallback: { A: ["127.0.0.1"] }, look: lookIn(zone) })
  const name = `${client.command}.corp.example`
  try {
    const server = await startServer({
      tls,
      ...url === undefined ? {} : { databaseUrl: url },
      env: {
        ACME_SVC_DNS__RESOLVER: dns.address,
        ACME_SVC_CHALLENGE__ENABLED: "http-01,dns-01,tls-alpn-01",
        ACME_SVC_CHALLENGE__HTTP_01__PORT: `${httpPort}`,
        ACME_SVC_CHALLENGE__TLS_ALPN_01__PORT: `${alpnPort}`
      }
    })
    try {
      return await playAll(client, database, {
        server,
        home,
        httpPort,
        alpnPort,
        zone,
        nameServer: dns.address,
        names: [name, client.challenge === "dns-01" ? `*.${name}` : `www.${name}`],
        trust: join(server.directory, "server.pem")
      })
    } finally {
      await server.dispose()
    }
  } finally {
    await dns.stop()
    rmSync(home, { recursive: true, force: true })
  }
}

const table = (outcomes: ReadonlyArray<Outcome>): string => {
  const rows = outcomes.map(({ client, database, error, milliseconds, scenario }) => [
    client,
    scenario,
    database,
    error === undefined ? "ok" : "FAILED",
    `${(milliseconds / 1000).toFixed(1)} s`
  ])
  const all = [["client", "scenario", "database", "result", "time"], ...rows]
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? []
  return all.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd()).join("\n")
}

const main = async (): Promise<boolean> => {
  await install()
  const trusts = await canTrust()
  if (!trusts) {
    say(
      "uacme is driven over plain HTTP: it trusts the system's bundle only, and mount namespaces are not allowed here"
    )
  }
  const outcomes: Array<Outcome> = []
  const cluster = await startPostgres()
  try {
    for (const database of ["SQLite", "PostgreSQL"]) {
      for (const client of clients) {
        const url = database === "SQLite" ? undefined : await cluster.createDatabase()
        outcomes.push(...await drive(client, database, url, client.command !== "uacme" || trusts))
      }
    }
  } finally {
    await cluster.stop()
  }
  const failed = outcomes.filter(({ error }) => error !== undefined).length
  say(`\n${table(outcomes)}\n\n${outcomes.length - failed} passed, ${failed} failed`)
  return failed === 0 && outcomes.length > 0
}

main().then(
  (passed) => {
    process.exitCode = passed ? 0 : 1
  },
  (error: unknown) => {
    say(`${error instanceof Error ? error.message : String(error)}\n0 passed, 1 failed`)
    process.exitCode = 1
  }
)

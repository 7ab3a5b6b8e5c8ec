import { execFileSync } from "node:child_process"
import { copyFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { freePort } from "../../test/support/Ports.ts"
import type { TlsFiles } from "./BareHttp.ts"
import { temporaryDirectory } from "./Cleanup.ts"
import type { Forked } from "./Forked.ts"
import { startForked } from "./Forked.ts"
import type { knocks } from "./Knocks.ts"
import type { Progress } from "./Measure.ts"
import { median } from "./Median.ts"
import type { Options } from "./Options.ts"
import * as Procfs from "./Procfs.ts"
import type { Paint } from "./Report.ts"
import { table } from "./Report.ts"
import type { Service } from "./Service.ts"
import { startService } from "./Service.ts"

/* Measures the cost of a new TLS connection for two kinds of server keys, with and without resumed sessions. */

const keys = {
  "RSA 2048": "rsa:2048",
  "P-256": "ec -pkeyopt ec_paramgen_curve:P-256"
} as const
const rounds = 5
const ticketsTried = 20

/** The results of one kind of connection, as medians over the rounds. */
export interface Handshake {
  readonly key: string
  readonly resumes: boolean
  readonly connections: number
  /** The share of the connections that resumed a session. */
  readonly resumed: number
  readonly perSecond: number
  /** CPU milliseconds of the service per connection. */
  readonly cpu: number
}

/** How many of its session tickets the service still accepts later. */
export interface Tickets {
  readonly when: string
  readonly taken: number
  readonly tried: number
}

/** All results about new connections. */
export interface HandshakeCost {
  readonly concurrency: number
  readonly handshakes: ReadonlyArray<Handshake>
  readonly tickets: ReadonlyArray<Tickets>
}

const filesOf = (key: string): TlsFiles => {
  const directory = temporaryDirectory()
  const files = { certificate: join(directory, "server.pem"), privateKey: join(directory, "server.key") }
  execFileSync("openssl", [
    ...`req -x509 -newkey ${key} -nodes -days 2 -subj /CN=localhost`.split(" "),
    "-addext",
    "subjectAltName=IP:127.0.0.1",
    "-keyout",
    files.privateKey,
    "-out",
    files.certificate
  ], { stdio: "ignore" })
  return files
}

const portOf = ({ directoryUrl }: Service): number => Number(new URL(directoryUrl).port)

/** Gets tickets, runs `between`, and counts how many of the tickets the service then still accepts. */
const takenAfter = async (
  client: Forked<typeof knocks>,
  port: number,
  when: string,
  between: () => Promise<void>
): Promise<Tickets> => {
  const tickets: Array<Buffer> = []
  for (let i = 0; i < ticketsTried; i++) tickets.push(await client.call("ticket", port))
  await between()
  let taken = 0
  for (const ticket of tickets) if (await client.call("isTaken", { port, ticket })) taken++
  return { when, taken, tried: ticketsTried }
}

/** Counts the accepted tickets of two processes that share a port. Each process issues its own tickets. */
const takenByTwo = async (client: Forked<typeof knocks>, { nodeWords, synchronous }: Options): Promise<Tickets> => {
  const port = await freePort()
  const tls = filesOf(keys["P-256"])
  const variables = {
    ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
    ACME_SVC_SERVER__BASE_URL: `https://127.0.0.1:${port}`,
    ACME_SVC_SERVER__REUSE_PORT: "true"
  }
  const common = { databaseUrl: "sqlite://bench.db", synchronous, nodeWords, tls, variables }
  const first = await startService(common)
  const second = await startService({ ...common, directory: first.directory })
  const taken = await takenAfter(client, port, "P-256, two processes on one port", () => Promise.resolve())
  await Promise.all([first.stop(), second.stop()])
  return taken
}

/** Measures with the last concurrency of the options. */
export const measureHandshakes = async (
  options: Options,
  progress: Progress
): Promise<HandshakeCost> => {
  const { concurrency: given, extent, nodeWords, synchronous } = options
  const concurrency = given.at(-1) ?? 1
  const client = startForked<typeof knocks>("knocks")
  const common = { databaseUrl: "sqlite://bench.db", synchronous, nodeWords }
  const files = new Map(Object.entries(keys).map(([key, words]) => [key, filesOf(words)]))
  const services = new Map<string, Service>()
  for (const [key, tls] of files) {
    progress(`starting with ${key}`)
    services.set(key, await startService({ ...common, tls }))
  }
  const kinds = [...services].flatMap(([key, service]) => [false, true].map((resumes) => ({ key, service, resumes })))
  const windows = kinds.map((): Array<{ cpu: number; perSecond: number; resumed: number; connections: number }> => [])
  for (let round = 0; round <= rounds; round++) {
    const order = [...kinds.entries()]
    for (const [index, { key, resumes, service }] of round % 2 === 0 ? order : order.toReversed()) {
      progress(`${key}${resumes ? ", resuming" : ""}, ${round === 0 ? "warming up" : `round ${round} of ${rounds}`}`)
      const before = Procfs.cpuOf(service.pid).total
      const { connections, elapsedMs, resumed } = await client.call("open", {
        port: portOf(service),
        concurrency,
        resumes,
        seconds: extent.seconds,
        connections: extent.issuances
      })
      const cpu = (Procfs.cpuOf(service.pid).total - before) / connections
      if (round === 0) continue
      windows[index]?.push({
        cpu,
        connections,
        perSecond: connections / elapsedMs * 1000,
        resumed: resumed / connections
      })
    }
  }
  const tickets: Array<Tickets> = []
  for (const [key, service] of services) {
    const port = portOf(service)
    tickets.push(await takenAfter(client, port, `${key}, the same process`, () => Promise.resolve()))
    tickets.push(
      await takenAfter(client, port, `${key}, after a reload`, async () => {
        const before = service.logged()
        process.kill(service.pid, "SIGHUP")
        for (let i = 0; i < 100 && service.logged() === before; i++) await delay(50)
        await delay(500)
      })
    )
    tickets.push(
      await takenAfter(client, port, `${key}, after a reload with another certificate`, async () => {
        const other = filesOf(keys[key as keyof typeof keys])
        const own = files.get(key)
        if (own === undefined) return
        copyFileSync(other.privateKey, own.privateKey)
        copyFileSync(other.certificate, own.certificate)
        process.kill(service.pid, "SIGHUP")
        await delay(1500)
      })
    )
  }
  for (const service of services.values()) await service.stop()
  progress("two processes on one port")
  tickets.push(await takenByTwo(client, options))
  client.stop()
  return {
    concurrency,
    handshakes: kinds.map(({ key, resumes }, index) => {
      const of = (figure: "cpu" | "perSecond" | "resumed") => median((windows[index] ?? []).map((one) => one[figure]))
      return {
        key,
        resumes,
        connections: (windows[index] ?? []).reduce((sum, one) => sum + one.connections, 0),
        resumed: of("resumed"),
        perSecond: of("perSecond"),
        cpu: of("cpu")
      }
    }),
    tickets
  }
}

/** Prints the figures as tables. */
export const handshakeReport = (paint: Paint, { concurrency, handshakes, tickets }: HandshakeCost): string =>
  [
    paint.strong(`New connections over TLS 1.3, ${concurrency} clients, without a request`),
    table(
      paint,
      ["", "connections", "resumed", "per second", "CPU ms of the service"],
      handshakes.map(({ connections, cpu, key, perSecond, resumed, resumes }) => [
        `${key}, ${resumes ? "with a ticket" : "whole handshake"}`,
        String(connections),
        `${Math.round(resumed * 100)} %`,
        perSecond.toFixed(0),
        paint.strong(cpu.toFixed(2))
      ])
    ),
    table(
      paint,
      ["tickets", "taken"],
      tickets.map(({ taken, tried, when }) => [when, `${taken} of ${tried}`])
    )
  ].join("\n\n")

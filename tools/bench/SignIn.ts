import { readFileSync } from "node:fs"
import { request } from "node:http"
import { freePort } from "../../test/support/Ports.ts"
import { startPostgres } from "../../test/support/Postgres.ts"
import { temporaryDirectory } from "./Cleanup.ts"
import type { Percentiles } from "./Load.ts"
import { percentilesOf } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import type { Options } from "./Options.ts"
import * as Procfs from "./Procfs.ts"
import type { Paint } from "./Report.ts"
import { fixed, table } from "./Report.ts"
import { configured, migrate, runCommand, startService } from "./Service.ts"
import type { Dialect } from "./Statements.ts"

/*
 * Measures what strangers can learn from the time that a failed sign-in takes. Sign-ins with an existing name, with a
 * disabled name and with an unknown name take turns, and their times are compared. The bench also measures the cost of
 * fifty wrong passwords that arrive from one address at the same time.
 */

const kinds = ["known", "disabled", "unknown"] as const
type Kind = typeof kinds[number]

const burst = 50

/**
 * The results of sign-ins with one kind of name. Times are in milliseconds, and CPU is that of the service's process.
 */
interface Side extends Percentiles {
  readonly kind: Kind
  readonly mean: number
  readonly deviation: number
  readonly cpu: number
  /**
   * The share of pairs in which the sign-in with such a name took longer than the sign-in with an unknown name. One
   * half means that there is no difference. `error` is the standard error of this share if there is no difference.
   */
  readonly longer: number
  readonly error: number
}

/** The measurements on one database. */
export interface SignInCost {
  readonly name: Dialect
  readonly sides: ReadonlyArray<Side>
  /** Whether every answer had the same status and the same body. */
  readonly isAlike: boolean
  readonly burst: {
    readonly sent: number
    /** The number of answers for each status. */
    readonly statuses: { readonly [status: string]: number }
    /** The number of refusals in the log for each reason. */
    readonly reasons: { readonly [reason: string]: number }
    /** The CPU of all sign-ins of the burst, divided by the CPU of one sign-in. */
    readonly hashes: number
  }
  readonly others: number
}

interface Answered {
  readonly ms: number
  readonly status: number
  readonly body: string
}

interface Server {
  readonly port: number
  readonly pid: number
}

/** Returns an address that only this attempt uses, because the service counts failures by address. */
const addressOf = (kind: number, attempt: number): string =>
  `127.${10 + kind}.${Math.floor(attempt / 250)}.${1 + attempt % 250}`

/** Signs in with a wrong password. Every attempt has a separate connection, which is opened before its time begins. */
const attempt = ({ port }: Server, username: string, localAddress: string): Promise<Answered> =>
  new Promise((resolve, reject) => {
    const body = JSON.stringify({ username, password: "not the password" })
    let begun = 0
    const asked = request({
      host: "127.0.0.1",
      port,
      localAddress,
      method: "POST",
      path: "/api/session",
      agent: false,
      headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body) }
    }, (answer) => {
      let told = ""
      answer.setEncoding("utf8")
      answer.on("data", (chunk: string) => {
        told += chunk
      })
      answer.on("end", () => {
        resolve({ ms: performance.now() - begun, status: answer.statusCode ?? 0, body: told })
      })
      answer.on("error", reject)
    })
    asked.on("error", reject)
    asked.on("socket", (socket) => {
      socket.once("connect", () => {
        begun = performance.now()
        asked.end(body)
      })
    })
  })

const mean = (values: ReadonlyArray<number>): number => values.reduce((sum, one) => sum + one, 0) / values.length

const tally = (words: ReadonlyArray<string | number>): { readonly [word: string]: number } => {
  const counts: { [word: string]: number } = {}
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1
  return counts
}

const sideOf = (kind: Kind, taken: ReadonlyArray<Cost>, unknown: ReadonlyArray<Cost>): Side => {
  const times = taken.map(({ ms }) => ms)
  const average = mean(times)
  const pairs = taken.length * unknown.length
  const longer = taken.reduce((sum, { ms }) => sum + unknown.filter((other) => ms > other.ms).length, 0)
  return {
    kind,
    ...percentilesOf(times),
    mean: average,
    deviation: Math.sqrt(mean(times.map((one) => (one - average) ** 2))),
    cpu: mean(taken.map(({ cpu }) => cpu)),
    longer: kind === "unknown" ? 0.5 : longer / pairs,
    error: Math.sqrt((taken.length + unknown.length + 1) / (12 * pairs))
  }
}

interface Cost extends Answered {
  readonly cpu: number
}

const oneAfterAnother = async (
  server: Server,
  names: ReadonlyArray<string>,
  count: number,
  progress: Progress
): Promise<ReadonlyArray<ReadonlyArray<Cost>>> => {
  const taken = names.map((): Array<Cost> => [])
  for (let round = 0; round < count; round++) {
    if (round % 10 === 0) progress(`signing in: ${round} of ${count}`)
    for (let turn = 0; turn < names.length; turn++) {
      // The order changes in each round, so that no kind always follows the same other kind.
      const at = (round % 2 === 0 ? turn : names.length - 1 - turn) % names.length
      const before = Procfs.cpuOf(server.pid).total
      const answered = await attempt(server, names[at] ?? "", addressOf(at, round))
      taken[at]?.push({ ...answered, cpu: Procfs.cpuOf(server.pid).total - before })
    }
  }
  return taken
}

/** Returns the reasons of the refusals that the log has for an address. */
const reasonsOf = (logFile: string, address: string): ReadonlyArray<string> =>
  readFileSync(logFile, "utf8").split("\n")
    .filter((line) => line.includes(`"admin_login_failed"`) && line.includes(`"client_ip":"${address}"`))
    .map((line) => /"reason":"(\w+)"/.exec(line)?.[1] ?? "unnamed")

const names: { readonly [K in Kind]: string } = {
  known: "bench-known",
  disabled: "bench-disabled",
  unknown: "bench-nobody"
}

const measureOne = async (name: Dialect, options: Options, progress: Progress): Promise<SignInCost> => {
  const { attempts, nodeWords, synchronous } = options
  const cluster = name === "postgres" ? await startPostgres({ durable: true }) : undefined
  const adminPort = await freePort()
  const serving = {
    databaseUrl: await cluster?.createDatabase() ?? "sqlite://bench.db",
    directory: configured(temporaryDirectory()),
    synchronous,
    nodeWords,
    variables: {
      ACME_SVC_ADMIN__ENABLED: "true",
      ACME_SVC_ADMIN__BIND_ADDRESS: `127.0.0.1:${adminPort}`,
      ACME_SVC_ADMIN__BASE_URL: `http://127.0.0.1:${adminPort}`
    }
  }
  try {
    migrate(serving)
    for (const username of [names.known, names.disabled]) {
      const password = Buffer.from(crypto.getRandomValues(new Uint8Array(18))).toString("base64url")
      runCommand(serving, ["admin", "user", "create", username, "--role", "admin"], `${password}\n`)
    }
    runCommand(serving, ["admin", "user", "disable", names.disabled])
    const service = await startService(serving)
    const server = { port: adminPort, pid: service.pid }
    // In the first attempts the process loads and compiles code, so they do not count.
    for (let warm = 0; warm < 5; warm++) await attempt(server, names.unknown, addressOf(kinds.length, warm))
    const machine = Procfs.machineCpu()
    const own = Procfs.cpuOf(service.pid).total
    const [known = [], disabled = [], unknown = []] = await oneAfterAnother(
      server,
      kinds.map((kind) => names[kind]),
      attempts,
      (text) => progress(`${name}: ${text}`)
    )
    const since = Procfs.machineCpu()
    const busy = since.busy - machine.busy - (Procfs.cpuOf(service.pid).total - own)
    progress(`${name}: ${burst} at once from one address`)
    const before = Procfs.cpuOf(service.pid).total
    const at = addressOf(kinds.length + 1, 0)
    const answers = await Promise.all(Array.from({ length: burst }, () => attempt(server, names.known, at)))
    const cpu = Procfs.cpuOf(service.pid).total - before
    await service.stop()
    const all = [...known, ...disabled, ...unknown]
    return {
      name,
      sides: [
        sideOf("known", known, unknown),
        sideOf("disabled", disabled, unknown),
        sideOf("unknown", unknown, unknown)
      ],
      isAlike: new Set(all.map(({ body, status }) => `${status} ${body}`)).size === 1,
      burst: {
        sent: burst,
        statuses: tally(answers.map(({ status }) => status)),
        reasons: tally(reasonsOf(service.logFile, at)),
        hashes: cpu / mean(all.map((one) => one.cpu))
      },
      others: Math.max(0, busy / (since.total - machine.total))
    }
  } finally {
    await cluster?.stop()
  }
}

/** Measures on each database. */
export const measureSignIn = async (options: Options, progress: Progress): Promise<ReadonlyArray<SignInCost>> => {
  const costs: Array<SignInCost> = []
  for (const name of options.databases) costs.push(await measureOne(name, options, progress))
  return costs
}

const counted = (counts: { readonly [word: string]: number }): string =>
  Object.entries(counts).map(([word, count]) => `${count} × ${word}`).join(", ")

/** Prints the figures as tables. */
export const signInReport = (paint: Paint, costs: ReadonlyArray<SignInCost>): string =>
  costs.map((cost) =>
    [
      paint.strong(
        `Sign-ins with a wrong password on ${cost.name === "sqlite" ? "SQLite" : "PostgreSQL"}, one at a time`
      ),
      table(
        paint,
        ["name", "sign-ins", "ms: p50", "p95", "p99", "mean", "deviation", "CPU ms", "longer than unknown"],
        cost.sides.map((side) => [
          side.kind,
          String(side.count),
          fixed(side.p50, 1),
          fixed(side.p95, 1),
          fixed(side.p99, 1),
          fixed(side.mean, 1),
          fixed(side.deviation, 1),
          fixed(side.cpu, 1),
          side.kind === "unknown" ? "" : paint.strong(`${fixed(side.longer, 2)} ± ${fixed(side.error, 2)}`)
        ])
      ),
      [
        `  answers  ${cost.isAlike ? "the same status and the same body, octet by octet" : paint.bad("not all alike")}`,
        `  others   used ${Math.round(cost.others * 100)} % of the machine`,
        `  ${cost.burst.sent} at once from one address: ${counted(cost.burst.statuses)}; the log says ${
          counted(cost.burst.reasons)
        }; CPU of ${paint.strong(fixed(cost.burst.hashes, 1))} sign-ins`
      ].join("\n")
    ].join("\n\n")
  ).join("\n\n")

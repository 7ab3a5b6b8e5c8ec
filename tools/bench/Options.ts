import { parseArgs } from "node:util"
import type { Extent } from "./Load.ts"
import type { Synchronous } from "./Service.ts"
import type { Dialect } from "./Statements.ts"

/** The special measurements, each with an option of its name. Without such an option, the bench measures issuances. */
export const modeNames = [
  "attribution",
  "check",
  "cluster",
  "grown",
  "handshakes",
  "lists",
  "memory",
  "notify",
  "pages",
  "peers",
  "policy",
  "processes",
  "queue",
  "record",
  "relay",
  "sign-in",
  "slow-disk",
  "standby",
  "start",
  "token",
  "until-certificate"
] as const
export type Mode = (typeof modeNames)[number]

export interface Options {
  /** The special measurement, or undefined if the bench measures issuances. */
  readonly mode: Mode | undefined
  readonly databases: ReadonlyArray<Dialect>
  readonly concurrency: ReadonlyArray<number>
  readonly extent: Extent
  readonly synchronous: Synchronous
  readonly profileDirectory: string | undefined
  readonly nodeWords: ReadonlyArray<string>
  readonly json: boolean
  readonly listStatements: boolean
  readonly serviceOnly: boolean
  /** The file with the other servers for `peers`, or an empty text. */
  readonly peers: string
  /** Whether names are proved by http-01. Otherwise validation is bypassed. */
  readonly isProved: boolean
  /** Whether answers wait for the result of the validation and for the certificate. */
  readonly waits: boolean
  /**
   * The fraction of the full size of databases, of the issuances of `memory`, and of the rounds and times of `start`.
   */
  readonly part: number
  /** How many sign-ins `sign-in` makes with each kind of name. */
  readonly attempts: number
  /** How many reads of operators start in a second of `lists` and `pages`, while clients issue certificates. */
  readonly readsPerSecond: number
  /**
   * How many pairs of windows `lists` and `pages` measure. In one window of a pair there are reads, and in the other
   * there are none.
   */
  readonly rounds: number
  /**
   * The directory where `lists` and `pages` keep their databases for another run. If it is undefined, the databases are
   * removed.
   */
  readonly keep: string | undefined
  /** The sizes of the database for `lists` and `pages`. */
  readonly accounts: number
  readonly orders: number
  readonly auditRows: number
}

const usage = `Usage: npm run bench -- [options]

  --databases LIST    sqlite,postgres (both)
  --concurrency LIST  clients at once (1,8,16,32)
  --seconds N         length of each measurement (5; 2 where several take turns)
  --issuances N       measure so many issuances instead
  --normal            SQLite with synchronous = normal
  --grouped           SQLite with synchronous = grouped, for the service; the floor has normal

Without one of these everything about issuances is measured, with one of these nothing else:
  --peers FILE        the service, the ACME servers in this file and the floor by turns: bypassed, with http-01,
                      single requests
  --until-certificate how long a client waits for its certificate, signed here or relayed
  --attribution       where the CPU of an issuance goes, by a profile
  --handshakes        new connections over TLS, by key and resumption
  --start             until the first answer, a command, and what is used when idle
  --memory            what is resident after 10 000 issuances and after 100 000
  --check             the gate's short bench: fails when an issuance costs more than was recorded
  --record            measures the ratios of this commit and adds them to tools/bench/history.jsonl
  --grown             what a grown database costs; builds it first, for some ten minutes
  --policy            what fifty filter rules cost
  --queue             the queue by itself, beside up to a million done jobs
  --cluster           two acme and two worker processes beside one of all roles, on PostgreSQL
  --processes         2, 10 and 40 processes over one PostgreSQL: what grows with their number
  --standby           what waiting for a standby costs commits, with notifications and without, and issuances
  --token             what a CA key in a PKCS#11 token (SoftHSM2) costs an issuance beside one in a file
  --slow-disk         issuances and the directory on SQLite, with syncs that take 0, 1, 3 and 10 ms longer
  --relay             what relaying to Pebble costs beside signing
  --notify            what it costs an issuance that somebody is told
  --lists             what operators read on a grown database, and how it delays clients
  --pages             the same for the pages of the panel in place of the lists of the API
  --sign-in           what a failed sign-in tells and costs

  --attempts N        sign-ins with each kind of name for --sign-in (100)
  --reads N           reads a second beside the clients of --lists and --pages (4)
  --rounds N          pairs of windows of --lists and --pages, alone and beside reads (5)
  --keep DIR          keep the databases of --lists and --pages there, and use those that are there already
  --accounts N, --orders N, --audit-rows N
                      size of the database of --lists and --pages (1000000, 10000000, 1000000)
  --part N            only this part of what --grown, --lists, --pages and --queue build, of
                      what --memory issues, and of the rounds of --start, such as 0.01
  --service-only      leave out the floor, and the statement counts unless they are listed
  --http-01           prove the names by http-01, in place of bypassing validation
  --waits             answers wait for the result and for the certificate, so that a client needs no polls
  --statements        list the statements of one issuance, and those that cost PostgreSQL most
  --cpu-prof DIR      write a CPU profile of the server; the figures then include the profiler
  --node-args WORDS   further words for node, before the server's program
  --json              print everything as JSON
  --help
`

const fail = (message: string): never => {
  process.stderr.write(`bench: ${message}\n\n${usage}`)
  process.exit(2)
}

const modeWords = Object.fromEntries(
  modeNames.filter((name) => name !== "peers").map((name) => [name, { type: "boolean" }])
) as { readonly [M in Exclude<Mode, "peers">]: { readonly type: "boolean" } }

const parse = (words: ReadonlyArray<string>) => {
  try {
    return parseArgs({
      args: [...words],
      options: {
        ...modeWords,
        peers: { type: "string" },
        databases: { type: "string", default: "sqlite,postgres" },
        concurrency: { type: "string", default: "1,8,16,32" },
        seconds: { type: "string" },
        issuances: { type: "string" },
        normal: { type: "boolean", default: false },
        grouped: { type: "boolean", default: false },
        part: { type: "string", default: "1" },
        attempts: { type: "string", default: "100" },
        reads: { type: "string", default: "4" },
        rounds: { type: "string", default: "5" },
        keep: { type: "string" },
        accounts: { type: "string", default: "1000000" },
        orders: { type: "string", default: "10000000" },
        "audit-rows": { type: "string", default: "1000000" },
        "service-only": { type: "boolean", default: false },
        "http-01": { type: "boolean", default: false },
        waits: { type: "boolean", default: false },
        statements: { type: "boolean", default: false },
        "cpu-prof": { type: "string" },
        "node-args": { type: "string", default: "" },
        json: { type: "boolean", default: false },
        help: { type: "boolean", default: false }
      }
    }).values
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error))
  }
}

const list = (text: string): ReadonlyArray<string> =>
  text.split(",").map((word) => word.trim()).filter((word) => word !== "")

const number = (option: string, text: string, max: number, whole = true): number => {
  const value = Number(text)
  if (value > 0 && value <= max && (!whole || Number.isInteger(value))) return value
  return fail(`--${option} takes ${whole ? "a whole number" : "a number"} above 0 and up to ${max}, not ${text}`)
}

const isDialect = (word: string): word is Dialect => word === "sqlite" || word === "postgres"

/** Returns how many seconds a window lasts by default, or one turn if sides take turns. */
const defaultSeconds = (mode: Mode | undefined): number =>
  mode === "peers" || mode === "record" || mode === "handshakes" || mode === "standby" ? 2 : 5

/** Reads the command line. If the command line is wrong, the process ends. */
export const readOptions = (words: ReadonlyArray<string>): Options => {
  const given = parse(words)
  if (given.help) {
    process.stdout.write(usage)
    process.exit(0)
  }
  if (given.seconds !== undefined && given.issuances !== undefined) fail("--seconds and --issuances exclude each other")
  const databases = list(given.databases)
  const foreign = databases.find((word) => !isDialect(word))
  if (foreign !== undefined) fail(`--databases takes sqlite and postgres, not ${foreign}`)
  const part = number("part", given.part, 1, false)
  const scaled = (option: string, text: string) => Math.max(1000, Math.round(number(option, text, 1e9) * part))
  const asked = modeNames.filter((name) => given[name] !== undefined)
  if (asked.length > 1) fail(`${asked.map((name) => `--${name}`).join(" and ")} exclude each other`)
  const [mode] = asked
  return {
    mode,
    databases: databases.filter(isDialect),
    concurrency: list(given.concurrency).map((word) => number("concurrency", word, 1000)),
    extent: given.issuances === undefined
      ? { seconds: number("seconds", given.seconds ?? `${defaultSeconds(mode)}`, 3600, false) }
      : { issuances: number("issuances", given.issuances, 1_000_000) },
    synchronous: given.normal ? "normal" : given.grouped ? "grouped" : "full",
    profileDirectory: given["cpu-prof"],
    nodeWords: given["node-args"].split(" ").filter((word) => word !== ""),
    json: given.json,
    listStatements: given.statements,
    serviceOnly: given["service-only"],
    peers: given.peers ?? "",
    isProved: given["http-01"],
    waits: given.waits,
    part,
    // Each attempt comes from a separate address. There are no more addresses than this for each kind of name.
    attempts: number("attempts", given.attempts, 50_000),
    readsPerSecond: number("reads", given.reads, 1000, false),
    rounds: number("rounds", given.rounds, 1000),
    keep: given.keep,
    accounts: scaled("accounts", given.accounts),
    orders: scaled("orders", given.orders),
    auditRows: scaled("audit-rows", given["audit-rows"])
  }
}

import { spawn, spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { writePebbleFiles } from "../../test/support/PebbleFiles.ts"
import { freePort } from "../../test/support/Ports.ts"
import { startPostgres } from "../../test/support/Postgres.ts"
import { onEnd, temporaryDirectory } from "./Cleanup.ts"
import type { Forked } from "./Forked.ts"
import { startForked } from "./Forked.ts"
import type { load } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import type { Options } from "./Options.ts"
import * as Procfs from "./Procfs.ts"
import type { Paint } from "./Report.ts"
import { table } from "./Report.ts"
import { runCommand, startService } from "./Service.ts"
import type { Dialect } from "./Statements.ts"

/*
 * Measures how long a client waits from newOrder to the chain. The name is proved by http-01 or by a credential, and the
 * certificate is signed by the service or relayed to a second instance.
 */

/**
 * How long one kind of client waited for its certificates, in milliseconds. `way` says who signed, and what proved the
 * name.
 */
export interface Waits {
  readonly client: string
  readonly way: Way
  readonly count: number
  /** Requests for each issuance. A client that is no program also makes an account each time. */
  readonly requests: number
  readonly p50: number
  readonly p99: number
  /** The time of the whole program, if the client is a program. */
  readonly program: number | undefined
}

/** All results on one database. */
export interface UntilCertificate {
  readonly name: Dialect
  readonly waits: ReadonlyArray<Waits>
  readonly machineShare: number
}

const ways = ["http-01, signed here", "http-01, relayed", "credential, signed here"] as const

type Way = typeof ways[number]

/** The way with which the time and the requests of the others are compared. */
const usual: Way = "http-01, signed here"

const slugs: { readonly [W in Way]: string } = {
  "http-01, signed here": "signed",
  "http-01, relayed": "relayed",
  "credential, signed here": "proved"
}

const counts = { eager: 100, patient: 20, certbot: 12, warmUp: 300 }
const turns = 5

/** The first two are clients of the load generator. */
const clients = ["asks again at once", "heeds Retry-After", "certbot"] as const

type ClientName = typeof clients[number]

const sorted = (values: ReadonlyArray<number>): ReadonlyArray<number> => values.toSorted((one, other) => one - other)
const at = (values: ReadonlyArray<number>, fraction: number): number =>
  sorted(values)[Math.min(values.length - 1, Math.ceil(values.length * fraction) - 1)] ?? Number.NaN

interface Ports {
  readonly bare: number
  readonly certbot: number
}

const profileOf = (way: Way, client: keyof Ports): string => `${slugs[way]}-${client}`

const configurationOf = (ports: Ports, resolver: string, upstream: string): string =>
  [
    `[dns]\nresolver = "${resolver}"`,
    "[challenge]\nallow_loopback = true",
    ...ways.flatMap((way) =>
      (["bare", "certbot"] as const).flatMap((client) => {
        const profile = profileOf(way, client)
        return [
          `[profiles.${profile}]\nenabled = true`,
          `[profiles.${profile}.challenge.http_01]\nport = ${ports[client]}`,
          ...slugs[way] === "proved" ? [`[profiles.${profile}.eab]\nenabled = true`] : [],
          ...slugs[way] === "relayed"
            ? [
              `[profiles.${profile}.signer]\nbackend = "relay"`,
              `[profiles.${profile}.signer.relay]\ndirectory_url = "${upstream}"\n`
              + `account_key_path = "${profile}.key"\nchallenge_strategy = "bypass"`
            ]
            : []
        ]
      })
    )
  ].join("\n\n")

const isCertbotInstalled = (): boolean => spawnSync("certbot", ["--version"], { stdio: "ignore" }).error === undefined

interface Credential {
  readonly kid: string
  readonly hmacKey: string
}

/** Makes a credential whose names need no challenge. */
const makeCredential = (options: Parameters<typeof runCommand>[0]): Credential =>
  JSON.parse(
    runCommand(options, ["eab", "create", "--label", "bench", "--names", "**.example.org", "--prevalidated", "--json"])
  ) as Credential

const stampOf = (line: string): number => Date.parse(`${line.slice(0, 10)}T${line.slice(11, 23).replace(",", ".")}Z`)

/**
 * Returns the milliseconds from newOrder to the chain, which is the last answer, by the times in certbot's log, and the
 * number of requests of the run.
 */
const runIn = (log: string): Run => {
  const lines = log.split("\n")
  const ordered = lines.find((line) => /:Sending POST request to \S+\/new-?order/i.test(line))
  const answered = lines.findLast((line) => line.includes(":Received response:"))
  if (ordered === undefined || answered === undefined) {
    throw new Error(`certbot's log has no order:\n${log.slice(-2000)}`)
  }
  const requests = lines.filter((line) => /:Sending (?:GET|HEAD|POST) request to /.test(line)).length
  return { waits: [stampOf(answered) - stampOf(ordered)], requests }
}

/**
 * One run of a client: how long each issuance took in milliseconds, and how many requests there were. `program` is the
 * time of the whole program, if the client is one.
 */
interface Run {
  readonly waits: ReadonlyArray<number>
  readonly requests: number
  readonly program?: number
}

/** Collects the runs of one client. */
const newRuns = (client: ClientName, way: Way) => {
  const runs: Array<Run> = []
  return {
    client,
    way,
    add: (run: Run): void => void runs.push(run),
    result: (): Waits => {
      const taken = runs.flatMap(({ waits }) => waits)
      const programs = runs.flatMap(({ program }) => program ?? [])
      return {
        client,
        way,
        count: taken.length,
        requests: runs.reduce((sum, { requests }) => sum + requests, 0) / taken.length,
        p50: at(taken, 0.5),
        p99: at(taken, 0.99),
        program: programs.length === 0 ? undefined : at(programs, 0.5)
      }
    }
  }
}

const runCertbot = async (
  directoryUrl: string,
  { certificate, credential, home, name, port }: {
    readonly certificate: string
    readonly credential: Credential | undefined
    readonly home: string
    readonly name: string
    readonly port: number
  }
): Promise<Run> => {
  rmSync(join(home, "logs"), { recursive: true, force: true })
  mkdirSync(join(home, "logs"), { recursive: true })
  const begun = performance.now()
  const child = spawn("certbot", [
    ..."certonly --standalone --http-01-address 127.0.0.1 --agree-tos --no-eff-email -m a@example.org".split(" "),
    ..."--non-interactive --config-dir config --work-dir work --logs-dir logs".split(" "),
    "--http-01-port",
    `${port}`,
    "--server",
    directoryUrl,
    ...credential === undefined ? [] : ["--eab-kid", credential.kid, "--eab-hmac-key", credential.hmacKey],
    "-d",
    name
  ], {
    cwd: home,
    env: { PATH: process.env["PATH"], HOME: home, TZ: "UTC", REQUESTS_CA_BUNDLE: certificate },
    stdio: "ignore"
  })
  const release = onEnd(() => child.kill("SIGKILL"))
  const code = await new Promise((done) => child.once("exit", done))
  release()
  const program = performance.now() - begun
  const log = readFileSync(join(home, "logs/letsencrypt.log"), "utf8")
  if (code !== 0) throw new Error(`certbot ended with ${code}:\n${log.slice(-2000)}`)
  return { ...runIn(log), program }
}

const measureOne = async (
  name: Dialect,
  { extent, nodeWords, synchronous }: Options,
  loader: Forked<typeof load>,
  progress: Progress
): Promise<UntilCertificate> => {
  const cluster = name === "postgres" ? await startPostgres({ durable: true }) : undefined
  try {
    progress(`${name}: starting`)
    const { httpPort, resolver } = await loader.call("prove")
    const ports = { bare: httpPort, certbot: await freePort() }
    const tls = await writePebbleFiles(temporaryDirectory())
    const upstream = await startService({ databaseUrl: "sqlite://bench.db", synchronous, nodeWords })
    const databaseUrl = await cluster?.createDatabase() ?? "sqlite://bench.db"
    const service = await startService({
      databaseUrl,
      synchronous,
      nodeWords,
      tls,
      variables: { ACME_SVC_CHALLENGE__BYPASS: "false" },
      configuration: configurationOf(ports, resolver, upstream.directoryUrl)
    })
    const before = Procfs.machineCpu()
    const credential = makeCredential({ databaseUrl, synchronous, nodeWords, directory: service.directory })
    const credentialOf = (way: Way) => slugs[way] === "proved" ? credential : undefined
    const all = ways.flatMap((way) => clients.map((client) => newRuns(client, way)))
    const add = (way: Way, client: ClientName, one: Run) =>
      all.find((runs) => runs.way === way && runs.client === client)?.add(one)
    const countOf = (client: keyof typeof counts, parts = 1) => Math.ceil((extent.issuances ?? counts[client]) / parts)
    const run = async (way: Way, issuances: number, isPatient: boolean, concurrency: number): Promise<Run> => {
      await loader.call("target", service.directoryOf(profileOf(way, "bare")))
      await loader.call("prepare", issuances)
      const bound = credentialOf(way)
      const { requests } = await loader.call("run", {
        concurrency,
        issuances,
        isPatient,
        withProof: true,
        ...bound === undefined ? {} : { credential: bound }
      })
      return { waits: await loader.call("ordered"), requests }
    }
    for (const way of ways) {
      progress(`${name}: warming up, ${way}`)
      await run(way, countOf("warmUp"), false, 8)
    }
    // The ways take turns, so that other work of the machine affects all of them.
    for (let turn = 1; turn <= turns; turn++) {
      for (const way of ways) {
        progress(`${name}: ${way}, ${turn} of ${turns}`)
        add(way, "asks again at once", await run(way, countOf("eager", turns), false, 1))
        // Patient clients wait nearly all the time, so that four at once do not affect each other.
        add(way, "heeds Retry-After", await run(way, countOf("patient", turns), true, 4))
      }
    }
    const certbots = isCertbotInstalled() ? ways.map((way) => ({ way, home: temporaryDirectory() })) : []
    for (let i = 0; i <= countOf("certbot"); i++) {
      for (const { home, way } of certbots) {
        progress(`${name}: certbot, ${way}, ${i} of ${countOf("certbot")}`)
        const one = await runCertbot(service.directoryOf(profileOf(way, "certbot")), {
          certificate: tls.certificate,
          credential: credentialOf(way),
          home,
          name: `certbot-${i}.${slugs[way]}.example.org`,
          port: ports.certbot
        })
        // The first run also makes an account and reads modules from the disk, so it does not count.
        if (i > 0) add(way, "certbot", one)
      }
    }
    const after = Procfs.machineCpu()
    await service.stop()
    await upstream.stop()
    const waits = all.map(({ result }) => result()).filter(({ count }) => count > 0)
    return { name, waits, machineShare: (after.busy - before.busy) / (after.total - before.total) }
  } finally {
    await cluster?.stop()
  }
}

/** Measures on each database. */
export const measureUntilCertificate = async (
  options: Options,
  progress: Progress
): Promise<ReadonlyArray<UntilCertificate>> => {
  const loader = startForked<typeof load>("load")
  const measured: Array<UntilCertificate> = []
  for (const name of options.databases) measured.push(await measureOne(name, options, loader, progress))
  loader.stop()
  return measured
}

/** Prints one table for each database. */
export const untilReport = (paint: Paint, measured: ReadonlyArray<UntilCertificate>): string =>
  measured.map(({ machineShare, name, waits }) => {
    const usually = (client: string) => waits.find((one) => one.client === client && one.way === usual)?.p50
    return [
      paint.strong(
        `From newOrder to the certificate on ${name === "sqlite" ? "SQLite" : "PostgreSQL"}, TLS; `
          + `machine in use to ${Math.round(machineShare * 100)} %`
      ),
      table(
        paint,
        ["", "issuances", "requests", "ms p50", "p99", `to ${usual}`, "program ms p50"],
        waits.map(({ client, count, p50, p99, program, requests, way }) => [
          `${way}, ${client}`,
          String(count),
          requests.toFixed(1),
          paint.strong(p50.toFixed(0)),
          p99.toFixed(0),
          (p50 / (usually(client) ?? Number.NaN)).toFixed(2),
          program === undefined ? "" : program.toFixed(0)
        ])
      )
    ].join("\n\n")
  }).join("\n\n")

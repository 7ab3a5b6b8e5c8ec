import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { inspect } from "node:util"
import type { AttentionCause } from "../../src/domain/words/AttentionCause.ts"
import { AcmeSession } from "../support/AcmeSession.ts"
import type { World } from "../support/Ground.ts"
import { startWorld } from "../support/Ground.ts"
import { patienceMs } from "../support/Patience.ts"
import { freePort } from "../support/Ports.ts"
import type { Server, ServerOptions } from "../support/Server.ts"
import { runToEnd, startServer } from "../support/Server.ts"
import type { Incident } from "./Incident.ts"
import type { Firing } from "./Recording.ts"
import { Recording } from "./Recording.ts"
import { Issuers, readScrape, textOf } from "./Scraped.ts"

/** What the tests read of a line of `acme-svc attention --json`. */
interface Told {
  readonly cause: AttentionCause
  readonly runbook: string
}

/** A process of the service that is scraped. */
export interface Member {
  readonly server: Server
  /** The target as Prometheus names it. */
  readonly instance: string
}

interface Target extends Member {
  readonly port: number
}

/** How a process is started. */
export interface MemberOptions extends Pick<ServerOptions, "databaseUrl" | "env" | "flags" | "startedBy"> {
  /** The working directory, by default that of the scene. */
  readonly directory?: string
}

const clock = new URL("../support/ShiftedClock.ts", import.meta.url).pathname

/** The pause before a scrape. The processes look for due timers every 20 ms, and do the due work within this pause. */
const pauseMillis = 150
const minuteMillis = 60_000
/** How long the service may take to tell a cause. Processes report some facts every ten seconds. */
const tellsWithinMillis = 40_000
const job = "acme-svc"
const scrapeTimeoutMillis = 10_000

/**
 * The place where an incident is played. A scene runs processes of the built service and moves their clocks. For each
 * minute of these clocks, the scene scrapes the metrics once and records them.
 */
export class Scene {
  readonly recording = new Recording()
  readonly #issuers = new Issuers()
  readonly #members: Array<Target> = []
  readonly #ends: Array<() => Promise<void> | void> = []
  readonly #home: string
  /** What the processes were started with besides the configuration. Commands need the same. */
  readonly #given: Record<string, string> = {}
  #ahead = 0

  /** The working directory of the processes, with `config.toml`. */
  readonly directory: string
  readonly world: World
  /** The name of the incident, which is the name of its runbook. */
  readonly incident: string
  /** What the service has asked attention for. */
  readonly told: Array<string> = []

  private constructor(incident: string, directory: string, world: World) {
    this.incident = incident
    this.directory = directory
    this.world = world
    this.#home = mkdtempSync(join(tmpdir(), "acme-clock-"))
    this.#set()
  }

  /** Makes the scene of an incident, with its `config.toml`. */
  static async open({ config, name }: Pick<Incident, "config" | "name">): Promise<Scene> {
    const directory = mkdtempSync(join(tmpdir(), "acme-alerts-"))
    const scene = new Scene(name, directory, await startWorld())
    scene.configure(config)
    scene.atEnd(() => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }))
    scene.atEnd(() => scene.world.stop())
    return scene
  }

  /** Writes `config.toml` with a section for metrics. A process reads the file when it starts. */
  configure(config: string): void {
    writeFileSync(join(this.directory, "config.toml"), `[metrics]\nenabled = true\n${config}`)
  }

  #set(): void {
    writeFileSync(join(this.#home, "ahead"), `${this.#ahead}`)
  }

  /** The environment variables that give a process the clock of the scene. */
  get env(): Readonly<Record<string, string>> {
    return {
      ...this.world.env,
      NODE_OPTIONS: `--import=${clock}`,
      ACME_TEST_CLOCK: join(this.#home, "ahead"),
      ACME_SVC_JOBS__POLL_INTERVAL_MS: "50"
    }
  }

  /** The time of the scene in epoch seconds. */
  get now(): number {
    return Math.floor((Date.now() + this.#ahead) / 1000)
  }

  /** Adds a cleanup function. At the end, the last one runs first. */
  atEnd(undo: () => Promise<void> | void): void {
    this.#ends.unshift(undo)
  }

  /** Starts a process that Prometheus scrapes as `<name>:3002`. */
  async start(name: string, options: MemberOptions = {}): Promise<Member> {
    const port = await freePort()
    Object.assign(this.#given, options.env)
    if (options.databaseUrl !== undefined) this.#given["ACME_SVC_DATABASE__URL"] = options.databaseUrl
    const server = await startServer({
      directory: this.directory,
      config: null,
      ...options,
      env: { ...this.env, ACME_SVC_METRICS__BIND_ADDRESS: `127.0.0.1:${port}`, ...options.env }
    })
    const member = { server, instance: `${name}:3002`, port }
    this.#members.push(member)
    this.atEnd(() => server.dispose())
    return member
  }

  /** Starts an acme process and a worker over one database, as on two hosts. */
  async startApart(options: MemberOptions = {}): Promise<{ readonly acme: Member; readonly worker: Member }> {
    const worker = await this.start("worker", {
      ...options,
      flags: ["--role", "worker"],
      startedBy: "job_runner_started"
    })
    return { worker, acme: await this.start("acme", { ...options, flags: ["--role", "acme"] }) }
  }

  /** Makes a new account at a process. */
  async account({ server }: Member, profile = "default"): Promise<AcmeSession> {
    const session = await AcmeSession.open(server.profileUrl(profile), { patienceMs: 10_000 })
    this.atEnd(() => session.close())
    await session.register()
    return session
  }

  /** Gets a certificate for an account, and returns the chain. */
  async issue(session: AcmeSession, name: string): Promise<string> {
    return (await session.issue([name], this.world.responder.tokens)).chain
  }

  #run(words: ReadonlyArray<string>) {
    return runToEnd(words, { config: null, directory: this.directory, env: { ...this.env, ...this.#given } })
  }

  /** Runs a command that must succeed while the service runs, and returns the output. */
  async command(words: ReadonlyArray<string>): Promise<string> {
    const { code, stderr, stdout } = await this.#run(words)
    if (code !== 0) throw new Error(`acme-svc ${words.join(" ")}: exit ${code}: ${stderr}`)
    return stdout
  }

  /** Runs a command that the runbook of the incident must name. */
  async byRunbook(words: ReadonlyArray<string>): Promise<string> {
    const group = words.filter((word) => /^[a-z][a-z-]*$/.test(word)).slice(0, 2).join(" ")
    const path = `docs/operate/runbooks/${this.incident}.md`
    if (!readFileSync(path, "utf8").includes(`acme-svc ${group}`)) throw new Error(`${path} does not name ${group}`)
    return await this.command(words)
  }

  async #attention(): Promise<ReadonlyArray<Told>> {
    const answer: { readonly items: ReadonlyArray<Told>; readonly unread: ReadonlyArray<string> } = JSON.parse(
      await this.command(["attention", "--json"])
    )
    if (answer.unread.length > 0) throw new Error(`not read: ${answer.unread.join(", ")}`)
    return answer.items
  }

  /**
   * Waits until the service asks attention for these causes and no others. The first one must name the runbook of the
   * incident. Without causes, all must be well.
   */
  async tells(...causes: ReadonlyArray<AttentionCause>): Promise<void> {
    const wanted = causes.toSorted().join(", ")
    const deadline = performance.now() + tellsWithinMillis
    for (;;) {
      const items = await this.#attention()
      const found = [...new Set(items.map(({ cause }) => cause))].toSorted().join(", ")
      if (found === wanted) {
        const page = items.find(({ cause }) => cause === causes[0])?.runbook
        if (page !== undefined && page !== this.incident) throw new Error(`${causes[0]} names the runbook ${page}`)
        if (causes.length > 0) this.told.push(...causes.filter((cause) => !this.told.includes(cause)))
        return
      }
      if (performance.now() > deadline) {
        throw new Error(`it tells ${found || "nothing"}, and should tell ${wanted || "nothing"}: ${inspect(items)}`)
      }
      await delay(pauseMillis)
    }
  }

  /** The service cannot read its database. The command must say so. */
  async tellsNothing(): Promise<void> {
    const { code, stderr } = await this.#run(["attention"])
    if (code !== 1 || !stderr.includes("database")) throw new Error(`exit ${code}: ${stderr}`)
    this.told.push("the command and every page say that the database does not answer")
  }

  /** Moves the clocks forward without a scrape. */
  skip(seconds: number): void {
    this.#ahead += seconds * 1000
    this.#set()
  }

  async #scrape({ instance, port }: Target): Promise<ReadonlyMap<string, number>> {
    const target = { job, instance }
    const up = textOf({ name: "up", labels: target })
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/metrics`, {
        signal: AbortSignal.timeout(scrapeTimeoutMillis)
      })
      if (!answer.ok) return new Map([[up, 0]])
      return new Map([[up, 1], ...readScrape(await answer.text(), target, this.#issuers)])
    } catch {
      return new Map([[up, 0]])
    }
  }

  /**
   * Scrapes this many times, as if once for each minute, while the clocks stand still. Processes report some facts
   * every few seconds, which would be too old after a jump of the clocks.
   */
  async still(count: number): Promise<void> {
    for (let minute = 0; minute < count; minute++) await this.#record()
  }

  async #record(): Promise<void> {
    const scraped = await Promise.all(this.#members.map((member) => this.#scrape(member)))
    this.recording.add(new Map(scraped.flatMap((one) => [...one])))
  }

  /** Lets `count` minutes pass. Calls `during` at the beginning of each minute and scrapes at the end. */
  async minutes(count: number, during: (minute: number) => Promise<unknown> = () => Promise.resolve()): Promise<void> {
    for (let minute = 0; minute < count; minute++) {
      this.#ahead += minuteMillis
      this.#set()
      await delay(pauseMillis)
      await during(minute)
      await this.#record()
    }
  }

  /** Waits until a process reports that a profile has no working signer. */
  async degraded({ instance }: Member, profile: string): Promise<void> {
    const target = this.#members.find((member) => member.instance === instance)
    if (target === undefined) throw new Error(`${instance} is not scraped`)
    const series = textOf({ name: "acme_svc_profile_degraded", labels: { job, instance, profile } })
    const deadline = performance.now() + patienceMs
    while ((await this.#scrape(target)).get(series) !== 1) {
      if (performance.now() > deadline) throw new Error(`${profile} was not told to be degraded`)
      await delay(pauseMillis)
    }
  }

  /** Records that only these alerts fire now. */
  expect(what: string, firing: Firing = {}): void {
    this.recording.expect(what, firing)
  }

  /** Ends the processes and cleans up. */
  async close(): Promise<void> {
    for (const undo of this.#ends) await undo()
    rmSync(this.#home, { recursive: true, force: true })
  }
}

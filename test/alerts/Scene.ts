import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { AcmeSession } from "../support/AcmeSession.ts"
import type { World } from "../support/Ground.ts"
import { startWorld } from "../support/Ground.ts"
import { patienceMs } from "../support/Patience.ts"
import { freePort } from "../support/Ports.ts"
import type { Server, ServerOptions } from "../support/Server.ts"
import { runToEnd, startServer } from "../support/Server.ts"
import type { Firing } from "./Recording.ts"
import { Recording } from "./Recording.ts"
import { Issuers, readScrape, textOf } from "./Scraped.ts"

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
  #ahead = 0

  /** The working directory of the processes, with `config.toml`. */
  readonly directory: string
  readonly world: World

  private constructor(directory: string, world: World) {
    this.directory = directory
    this.world = world
    this.#home = mkdtempSync(join(tmpdir(), "acme-clock-"))
    this.#set()
  }

  /** Makes a scene with this `config.toml`. */
  static async open(config: string): Promise<Scene> {
    const directory = mkdtempSync(join(tmpdir(), "acme-alerts-"))
    const scene = new Scene(directory, await startWorld())
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

  /** Runs a command that must succeed while the service runs, and returns the output. */
  async command(words: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}): Promise<string> {
    const { code, stderr, stdout } = await runToEnd(words, {
      config: null,
      directory: this.directory,
      env: { ...this.env, ...env }
    })
    if (code !== 0) throw new Error(`acme-svc ${words.join(" ")}: exit ${code}: ${stderr}`)
    return stdout
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

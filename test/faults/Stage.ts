import { createHash } from "node:crypto"
import type { Findings } from "./Auditor.ts"
import { audit } from "./Auditor.ts"
import type { Load, LoadOptions } from "./Load.ts"
import { startLoad } from "./Load.ts"
import type { DatabaseName, Site, SiteOptions } from "./Site.ts"
import { startSite } from "./Site.ts"

/** What the run of a fault gets. */
export interface Means {
  readonly database: DatabaseName
  /** How often the fault is injected: the number of kills, resets, connections of a wave, or jobs. */
  readonly rounds: number
  readonly seed: string
  /** The number of honest clients at a time. */
  readonly clients: number
  /** Makes a PostgreSQL database that nothing else uses. */
  readonly freshPostgresUrl: () => Promise<string>
  /** Reports the progress. */
  readonly say: (text: string) => void
}

/** The result of a run. */
export interface Outcome extends Findings {
  readonly injected: number
  readonly acknowledged: number
  /** The measurements, in words. */
  readonly figures?: string
}

/** A fault, with its name, the databases on which it can be injected, and the function that injects it. */
export interface Fault {
  readonly name: string
  readonly databases: ReadonlyArray<DatabaseName>
  /** How often the fault is injected in a full run. */
  readonly rounds: number
  /** Whether the count is the size of one injection, such as the connections of a flood. */
  readonly isSize?: true
  /** Whether the fault compares two times. Such a fault runs alone. */
  readonly isTimed?: true
  /** Injects the fault. Fails if the service differs from the documentation, apart from losses and duplicates. */
  readonly run: (means: Means) => Promise<Outcome>
}

/** The fault cannot be injected on this machine. The message says why. */
export class NotPossible extends Error {}

/** A running service under load, and the functions that a fault needs. */
export interface Stage {
  readonly site: Site
  readonly load: Load
  /** Returns a random number from 0 up to but not including `below`, which the seed determines. */
  readonly chance: (below: number) => number
  readonly means: Means
  /** Records a figure for the table. */
  readonly measured: (figure: string) => void
}

/** Returns a source of random numbers that are the same for the same seed. */
const chanceOf = (seed: string): (below: number) => number => {
  let drawn = 0
  return (below) => createHash("sha256").update(`${seed} ${drawn++}`).digest().readUInt32BE(0) % below
}

/** Returns the options of a site on the selected database. */
export const siteOn = async (means: Means): Promise<Pick<SiteOptions, "databaseUrl">> =>
  means.database === "SQLite" ? {} : { databaseUrl: await means.freshPostgresUrl() }

/** Starts the service and the load, injects the fault, and audits the result. */
export const under = async (
  means: Means,
  options: SiteOptions & {
    /** Returns the port that honest clients use, which forwards to the port of the service. */
    readonly front?: (port: number) => Promise<number>
    /** How long honest clients repeat a request that fails, and how long they pause before each order. */
    readonly manners?: Pick<LoadOptions, "triesForMs" | "restMs" | "isForgetful">
    /** Looks for further losses and duplicates once the queue has only periodic jobs. */
    readonly afterwards?: (site: Site) => Promise<Findings>
    /** Judges what was found if the fault may cause losses. */
    readonly judge?: (stage: Stage, findings: Findings) => Promise<Findings>
  },
  /** Injects the fault, and returns how often it was injected. */
  inject: (stage: Stage) => Promise<number>
): Promise<Outcome> => {
  const site = await startSite(options)
  try {
    const { acme: { directoryUrl, port }, fronts, world: { responder } } = site
    const front = await options.front?.(port)
    const load = await startLoad({
      directoryUrl,
      responder,
      clients: means.clients,
      ports: front !== undefined ? [front] : fronts.length > 1 ? fronts.map((one) => one.port) : [],
      ...options.manners
    })
    try {
      const figures: Array<string> = []
      const measured = (figure: string) => void figures.push(figure)
      const stage: Stage = { site, load, chance: chanceOf(means.seed), means, measured }
      await load.beside(load.ledger.acknowledged.more(means.clients))
      const injected = await load.beside(inject(stage))
      await load.finish()
      const acknowledged = load.ledger.acknowledged.value
      means.say(`${injected} injected, ${acknowledged} acknowledged; auditing`)
      const found = await audit(site, load.ledger)
      const { lost, twice } = await options.judge?.(stage, found) ?? found
      const further = await options.afterwards?.(site)
      for (const odd of load.oddities) throw new Error(`an answer that is not documented: ${odd}`)
      if (!load.ledger.orders.some(({ chain }) => chain !== undefined)) throw new Error("nothing was issued")
      return {
        injected,
        acknowledged,
        figures: figures.join("; "),
        lost: [...lost, ...further?.lost ?? []],
        twice: [...twice, ...further?.twice ?? []]
      }
    } catch (error) {
      for (const { records, stderr } of site.processes) {
        const bad = records().filter(({ level }) => level === "error" || level === "warn")
        for (const record of bad.slice(-15)) means.say(JSON.stringify(record))
        means.say(stderr().slice(-2000))
      }
      throw error
    } finally {
      load.close()
    }
  } finally {
    await site.dispose()
  }
}

import { setTimeout as delay } from "node:timers/promises"
import { AcmeSession } from "../support/AcmeSession.ts"
import { minimalConfig, thisBuild } from "../support/Server.ts"
import { startCampaignClients } from "./CampaignClients.ts"
import { command } from "./Filled.ts"
import { patienceMs } from "./Load.ts"
import type { Site } from "./Site.ts"
import type { Fault } from "./Stage.ts"
import { siteOn, under } from "./Stage.ts"

/*
 * A campaign replaces certificates while other clients get theirs, and the service is killed
 * (docs/configure/campaigns.md).
 */

const profile = `${minimalConfig}[profiles.replaced.challenge]\nbypass = true\n`
const mostClients = 200
const leastHeld = 5
const pollMs = 5000
/** The pace of the campaign, certificates a second. Two cores issue more than this. */
const pace = 50
/** A round each minute counts what was replaced. */
const roundsMs = 180_000

interface Campaign {
  readonly id: string
  readonly state: string
  readonly matched: number
  readonly asked: number
  readonly replaced: number
  readonly remaining: number
}

const json = async <A>(site: Site, ...words: ReadonlyArray<string>): Promise<A> =>
  JSON.parse(await command(site, thisBuild, [...words, "--json"]))

const at = (sorted: ReadonlyArray<number>, fraction: number): number =>
  sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * fraction))] ?? Number.NaN

const p99 = (times: ReadonlyArray<number>): string =>
  `${at(times.toSorted((left, right) => left - right), 0.99).toFixed(0)} ms`

/** The service is killed twice in the middle of a campaign. */
export const campaignKilled: Fault = {
  name: "kill -9 in the middle of a campaign",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 10_000,
  isSize: true,
  run: async (means) => {
    const { rounds: certificates, say } = means
    const options = { ...await siteOn(means), config: profile }
    return under(means, options, async ({ load, measured, site }) => {
      const { acme } = site
      const first = await AcmeSession.open(acme.profileUrl("replaced"), { patienceMs, pollMs: 100 })
      const clients = Math.max(1, Math.min(mostClients, Math.floor(certificates / leastHeld)))
      const sessions = await Promise.all(Array.from({ length: clients }, () => first.another()))
      const held = await startCampaignClients({ ledger: load.ledger, sessions, certificates, pollMs })
      say(`${clients} clients have ${certificates} certificates`)
      const alone = load.issuances.length
      await load.ledger.acknowledged.more(20 * means.clients)

      const begun = load.issuances.length
      const { id } = await json<Campaign>(
        site,
        "campaign",
        "start",
        "--profile",
        "replaced",
        "--reason",
        "a fault of this test",
        "--pace",
        `${pace * 3600}`
      )
      const asking = load.beside(held.ask())
      await Promise.race([asking, held.replaced.more(Math.floor(certificates / 3))])
      const killed = load.issuances.length
      for (let kills = 0; kills < 2; kills++) {
        await acme.kill9()
        await acme.restart()
        await Promise.race([asking, held.replaced.more(Math.floor(certificates / 4))])
      }
      await asking
      const seconds = (fraction: number) =>
        `${(at(held.times.toSorted((a, b) => a - b), fraction) / 1000).toFixed(0)} s`
      measured(`${certificates} certificates of ${clients} clients`)
      measured(
        `replaced: a tenth after ${seconds(0.1)}, half ${seconds(0.5)}, nine tenths ${seconds(0.9)}, all ${seconds(1)}`
      )
      measured(
        `issuance p99 ${p99(load.issuances.slice(begun, killed))}, before the campaign ${
          p99(load.issuances.slice(alone, begun))
        }`
      )

      for (const end = Date.now() + roundsMs;; await delay(1000)) {
        const { matched, remaining, replaced, state } = await json<Campaign>(site, "campaign", "show", id)
        if (matched !== certificates) throw new Error(`the campaign has matched ${matched} certificates`)
        if (state === "ended" && replaced === certificates && remaining === 0) break
        if (Date.now() > end) throw new Error(`${replaced} replaced, ${remaining} left, the campaign is ${state}`)
      }
      return certificates
    })
  }
}

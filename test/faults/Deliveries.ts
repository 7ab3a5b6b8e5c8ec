import { setTimeout as delay } from "node:timers/promises"
import { minimalConfig } from "../support/Server.ts"
import type { Receivers } from "./Receivers.ts"
import { absences, startReceivers } from "./Receivers.ts"
import type { Fault, Means, Stage } from "./Stage.ts"
import { siteOn, under } from "./Stage.ts"

/*
 * A receiver of all events is unavailable, or the service is killed during a delivery. Each event must arrive with only
 * one id, no event may arrive that did not happen, and orders must not be affected.
 */

/** More attempts than are made during any outage here. */
const patient = { ACME_SVC_JOBS__MAX_ATTEMPTS: "1000", ACME_SVC_JOBS__RETRY_MAX_SECONDS: "2" }

/**
 * How many times as long an issuance may take while receivers are away. The limit exceeds 1 because two cores do all
 * the work.
 */
const mostTimes = 4

const at = (times: ReadonlyArray<number>, fraction: number): number =>
  times.toSorted((one, other) => one - other)[Math.ceil(times.length * fraction) - 1] ?? Number.NaN

const telling = (
  answerMillis: number,
  inject: (stage: Stage, receivers: Receivers) => Promise<number>,
  /** Checks what has arrived once everything has arrived. */
  arrived: (receivers: Receivers, measured: Stage["measured"]) => void = () => {}
) =>
async (means: Means) => {
  const receivers = await startReceivers(answerMillis)
  let measured: Stage["measured"] = () => {}
  try {
    return await under(
      means,
      {
        ...await siteOn(means),
        config: `${minimalConfig}${receivers.toml}`,
        env: patient,
        afterwards: async (site) => {
          const found = await receivers.audit(site)
          arrived(receivers, measured)
          return found
        }
      },
      (stage) => {
        measured = stage.measured
        return inject(stage, receivers)
      }
    )
  } finally {
    await receivers.close()
  }
}

/** The receivers are unavailable, each time in a different way. */
export const receiversAway: Fault = {
  name: "receivers of notifications away",
  databases: ["SQLite", "PostgreSQL"],
  isTimed: true,
  rounds: absences.length,
  run: telling(0, async ({ load, means: { clients, rounds }, measured }, receivers) => {
    const [beside, without]: [Array<number>, Array<number>] = [[], []]
    const spend = async (times: Array<number>) => {
      const from = load.issuances.length
      await load.ledger.acknowledged.more(10 * clients)
      times.push(...load.issuances.slice(from))
    }
    const failures = load.failures.value
    for (let round = 0; round < rounds; round++) {
      await spend(beside)
      await receivers.leave(absences[round % absences.length] ?? "refuses connections")
      await spend(without)
      await receivers.comeBack()
    }
    measured(`issuance p99 ${at(beside, 0.99).toFixed(0)} ms, receivers away ${at(without, 0.99).toFixed(0)} ms`)
    if (load.failures.value > failures) throw new Error("requests failed while receivers were away")
    if (at(without, 0.5) > mostTimes * at(beside, 0.5)) {
      throw new Error(`an issuance took ${at(without, 0.5).toFixed(0)} ms, and ${at(beside, 0.5).toFixed(0)} ms before`)
    }
    return rounds
  })
}

const slowMillis = 300

/** `kill -9` of the only process while a webhook has got a notification and has not answered. */
export const killWhileDelivering: Fault = {
  name: "kill -9 while delivering",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 5,
  run: telling(slowMillis, async ({ chance, means: { rounds }, site: { acme } }, receivers) => {
    for (let round = 0; round < rounds; round++) {
      await receivers.arrived.more(5 + chance(20))
      await delay(chance(slowMillis / 2))
      await acme.kill9()
      await acme.restart()
    }
    return rounds
  }, (receivers, measured) => {
    // Each kill cuts off at least the answer to the last notification.
    if (receivers.repeats() === 0) throw new Error("nothing that was cut off was told again")
    measured(`${receivers.repeats()} told again`)
  })
}

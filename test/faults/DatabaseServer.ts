import type { Forwarder } from "../support/Forwarder.ts"
import { startForwarder, through } from "../support/Forwarder.ts"
import { startPostgres } from "../support/Postgres.ts"
import type { Fault, Means, Outcome } from "./Stage.ts"
import { under } from "./Stage.ts"

/** PostgreSQL is stopped and started, alternately as in a crash and as in a restart by an administrator. */
export const restartedDatabase: Fault = {
  name: "PostgreSQL restarted",
  databases: ["PostgreSQL"],
  rounds: 6,
  run: async (means) => {
    const cluster = await startPostgres()
    try {
      return await under(
        means,
        { databaseUrl: await cluster.createDatabase() },
        async ({ chance, load, means: { clients, rounds } }) => {
          for (let round = 0; round < rounds; round++) {
            await load.answers.more(20 + chance(8 * clients))
            await cluster.halt(round % 2 === 0 ? "immediate" : "fast")
            // Waits until a client notices that the server is gone.
            await load.failures.more(1)
            await cluster.resume()
            await load.ledger.acknowledged.more(clients)
          }
          return rounds
        }
      )
    } finally {
      await cluster.stop()
    }
  }
}

/** Makes one failover. The service uses an address that belongs to the follower as soon as the first server is gone. */
const failOver = async (means: Means): Promise<Outcome> => {
  const cluster = await startPostgres({ followed: true })
  let address: Forwarder | undefined
  try {
    const url = await cluster.createDatabase()
    const follower = await cluster.follower()
    try {
      address = await startForwarder(cluster.port)
      const relay = address
      return await under(means, { databaseUrl: through(url, relay) }, async ({ chance, load, means: { clients } }) => {
        await load.answers.more(20 + chance(8 * clients))
        await cluster.halt()
        relay.resetAll()
        await follower.promote()
        relay.target = follower.port
        await load.ledger.acknowledged.more(3 * clients)
        return 1
      })
    } finally {
      await address?.stop()
      await follower.stop()
    }
  } finally {
    await cluster.stop()
  }
}

/** PostgreSQL crashes, and the server that follows takes over. */
export const failedOver: Fault = {
  name: "PostgreSQL failed over to a standby",
  databases: ["PostgreSQL"],
  rounds: 2,
  run: async (means) => {
    let total = await failOver(means)
    for (let round = 1; round < means.rounds; round++) {
      const next = await failOver({ ...means, seed: `${means.seed} ${round}` })
      total = {
        injected: total.injected + next.injected,
        acknowledged: total.acknowledged + next.acknowledged,
        lost: [...total.lost, ...next.lost],
        twice: [...total.twice, ...next.twice]
      }
    }
    return total
  }
}

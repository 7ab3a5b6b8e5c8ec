import type { Forwarder } from "../support/Forwarder.ts"
import { startForwarder, through } from "../support/Forwarder.ts"
import type { Fault } from "./Stage.ts"
import { under } from "./Stage.ts"

/** Resets the connection that carries the next octets that fit, before or after these have arrived. */
const breakNext = (relay: Forwarder, fits: (sent: Buffer) => boolean, isBefore: boolean): Promise<void> =>
  new Promise((resolve) => {
    relay.judge = (sent) => {
      if (!fits(sent)) return "pass"
      relay.judge = undefined
      resolve()
      return isBefore ? "reset before" : "reset after"
    }
  })

const isCommit = (sent: Buffer): boolean => sent.includes("COMMIT")

/**
 * Connections to PostgreSQL are reset, in two of three cases at a COMMIT, so that either the COMMIT or the answer is
 * lost.
 */
export const databaseResets: Fault = {
  name: "resets between service and database",
  databases: ["PostgreSQL"],
  rounds: 60,
  isSize: true,
  run: async (means) => {
    const url = await means.freshPostgresUrl()
    const relay = await startForwarder(Number(new URL(url).port))
    try {
      return await under(means, { databaseUrl: through(url, relay) }, async ({ chance, load, means: { rounds } }) => {
        for (let round = 0; round < rounds; round++) {
          await load.answers.more(chance(20))
          if (round % 3 === 2) relay.resetAll()
          else await breakNext(relay, isCommit, round % 3 === 0)
        }
        return relay.resets()
      })
    } finally {
      await relay.stop()
    }
  }
}

/** Connections of clients are reset while a request or its answer is in transit. */
export const clientResets: Fault = {
  name: "resets between client and service",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 100,
  isSize: true,
  run: async (means) => {
    let relay: Forwarder | undefined
    const front = async (port: number) => {
      relay = await startForwarder(port)
      return relay.port
    }
    const databaseUrl = means.database === "SQLite" ? {} : { databaseUrl: await means.freshPostgresUrl() }
    try {
      return await under(means, { ...databaseUrl, front }, async ({ chance, load, means: { rounds } }) => {
        if (relay === undefined) throw new Error("clients do not go through the relay")
        for (let round = 0; round < rounds; round++) {
          await load.answers.more(chance(8))
          if (round % 10 === 9) relay.resetAll()
          else await breakNext(relay, () => true, chance(2) === 0)
        }
        return relay.resets()
      })
    } finally {
      await relay?.stop()
    }
  }
}

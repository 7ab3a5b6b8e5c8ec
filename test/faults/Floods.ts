import { once } from "node:events"
import { AcmeSession } from "../support/AcmeSession.ts"
import { makeHttpClient } from "../support/Http.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import type { Raw } from "../support/RawClient.ts"
import { open } from "../support/RawClient.ts"
import { patienceMs } from "./Load.ts"
import type { Fault, Stage } from "./Stage.ts"
import { siteOn, under } from "./Stage.ts"

/**
 * The number of connections in a wave. Each wave is accepted before the next begins, because connections that overflow
 * the kernel's queue would never be closed.
 */
const waveSize = 100

/**
 * Returns whether a connection sends one request and then stays open, as if its client had another request. One
 * connection in five does so, and the others send nothing.
 */
const isKept = (index: number): boolean => index % 5 === 0

const fillUp = async ({ load, means: { clients, rounds }, site: { acme } }: Stage): Promise<number> => {
  const first = `GET ${new URL(acme.directoryUrl).pathname} HTTP/1.1\r\nHost: x\r\n\r\n`
  const idle: Array<Raw> = []
  const flood = async () => {
    while (idle.length < rounds) {
      const more = Array.from({ length: Math.min(waveSize, rounds - idle.length) }, (_, index) => {
        const at = idle.length + index
        return open(acme.port, isKept(at) ? first : "", `127.0.0.${2 + at % 250}`)
      })
      await Promise.all(more.map(({ socket }) => Promise.race([once(socket, "connect"), once(socket, "close")])))
      idle.push(...more)
    }
  }
  await Promise.all([flood(), load.ledger.acknowledged.more(2 * clients)])
  // The number of silent connections exceeds the limit for connections before their first request.
  if (rounds >= 1000) await acme.waitForEvent("server_connection_refused")
  // The service closes the silent connections. Those that sent a request may stay, up to the limit, and are closed
  // here.
  await Promise.all(idle.flatMap(({ ended }, index) => isKept(index) ? [] : [ended]))
  const fresh = await AcmeSession.open(acme.directoryUrl, { patienceMs })
  await fresh.register()
  fresh.close()
  for (const { socket } of idle) socket.destroy()
  return idle.length
}

/** More connections than the service keeps, from many addresses. */
export const idleConnections: Fault = {
  name: "idle connections",
  databases: ["SQLite"],
  rounds: 10_000,
  isSize: true,
  run: async (means) => under(means, await siteOn(means), fillUp)
}

const writers = 16
const largestBatch = 256
const ttlSeconds = 10

const askForNonces = async ({ load, means: { clients, rounds, say }, site }: Stage): Promise<number> => {
  const { begun, databaseUrl } = site
  const { directory: { newNonce } } = await load.another()
  const http = makeHttpClient()
  const seen = new Set<string>()
  let asked = 0
  const writer = async () => {
    while (asked < rounds) {
      asked++
      const answer = await http.send(newNonce, { method: "HEAD" })
      const nonce = answer.headers["replay-nonce"]
      if (answer.status === 503) continue
      if (answer.status !== 200 || nonce === undefined) throw new Error(`newNonce: ${answer.status}`)
      if (seen.has(String(nonce))) throw new Error("a nonce was handed out twice")
      seen.add(String(nonce))
    }
  }
  try {
    await Promise.all([...Array.from({ length: writers }, writer), load.ledger.acknowledged.more(2 * clients)])
  } finally {
    http.close()
  }
  const lastAt = Math.floor(Date.now() / 1000)
  const stored = async () =>
    Number((await sqlAt(databaseUrl, `SELECT count(*) AS n FROM nonces WHERE created_at <= ${lastAt}`))[0]?.["n"])
  const rows = await stored()
  // The largest number of nonces that may be stored: those that the flood and other clients requested, and the prepared
  // batches. A batch is discarded when a tenth of its validity is over, even if it has unused nonces.
  const batches = 2 + Math.floor((performance.now() - begun) / (ttlSeconds * 100))
  const most = seen.size + load.answers.value + batches * largestBatch
  if (rows > most) throw new Error(`${rows} nonces are stored, where ${most} were asked for`)
  say(`${seen.size} nonces handed out, ${rows} stored`)
  // The rows must be deleted. The test makes the sweep due at once, so that it need not wait for half a minute.
  await (await load.another()).poll(
    async () => {
      await sqlAt(databaseUrl, "UPDATE jobs SET run_at = 0 WHERE kind = 'nonce_sweep' AND status = 'ready'")
      return stored()
    },
    (left) => left === 0,
    patienceMs
  )
  return asked
}

/** Many requests for nonces that are never used. */
export const nonceFlood: Fault = {
  name: "flood of newNonce",
  databases: ["SQLite", "PostgreSQL"],
  rounds: 10_000,
  isSize: true,
  run: async (means) =>
    under(means, { ...await siteOn(means), env: { ACME_SVC_NONCE__TTL_SECONDS: `${ttlSeconds}` } }, askForNonces)
}

import { generateKeyPairSync } from "node:crypto"
import { once } from "node:events"
import { connect } from "node:net"
import { setTimeout as delay } from "node:timers/promises"
import { connect as connectTls } from "node:tls"
import { Worker } from "node:worker_threads"
import type { Neighbourly } from "./Neighbour.ts"
import type { Fault, Stage } from "./Stage.ts"
import { siteOn, under } from "./Stage.ts"

/*
 * Other clients keep a listener busy and fill its queue of connections. A new client must be served nevertheless
 * (docs/contribute/decisions/shares.md). Its wait includes the acceptance of the connection, the TLS handshake, and one
 * small answer.
 */

/**
 * The longest wait that half of the new clients may have. The slowest one proves nothing, because the machine has other
 * work as well.
 */
const mostMillis = 1000
const giveUpMillis = 15_000

/** Connects as a new client. Returns how many milliseconds pass until the first octets of an answer arrive. */
const arrival = async (port: number, tls: boolean): Promise<number> => {
  const begun = performance.now()
  const at = { port, host: "127.0.0.1", localAddress: "127.0.0.3" }
  const socket = tls ? connectTls({ ...at, rejectUnauthorized: false }) : connect(at)
  const signal = AbortSignal.timeout(giveUpMillis)
  try {
    await once(socket, tls ? "secureConnect" : "connect", { signal })
    socket.write("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    await once(socket, "data", { signal })
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    socket.destroy()
  }
  return performance.now() - begun
}

/**
 * Measures several new clients, one after the other. Returns the longest wait of the faster half, and the wait of the
 * slowest.
 */
const arrivals = async (count: number, port: number, tls: boolean) => {
  const times: Array<number> = []
  for (let at = 0; at < count; at++) {
    const millis = await arrival(port, tls)
    times.push(millis)
    if (millis >= giveUpMillis) break
    await delay(100)
  }
  const sorted = times.toSorted((left, right) => left - right)
  const [median = Number.NaN, slowest = Number.NaN] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)]
  return { median, text: `${median.toFixed(0)} ms, at most ${slowest.toFixed(0)} ms` }
}

/** Returns a request for a new account with a signature that does not verify. */
const refused = (directoryUrl: string): string => {
  const url = directoryUrl.replace(/directory$/, "newAccount")
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const { crv, kty, x, y } = publicKey.export({ format: "jwk" })
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url")
  const body = JSON.stringify({
    protected: encode({ alg: "ES256", nonce: "A".repeat(43), url, jwk: { crv, kty, x, y } }),
    payload: encode({ termsOfServiceAgreed: true }),
    signature: Buffer.alloc(64, 1).toString("base64url")
  })
  return `POST ${new URL(url).pathname} HTTP/1.1\r\nHost: x\r\nContent-Type: application/jose+json\r\n`
    + `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

const among = (tls: boolean) => async (stage: Stage): Promise<number> => {
  const { load, means: { rounds, say }, site: { acme: { directoryUrl, port } } } = stage
  await load.finish() // From here on, only the other clients cause load.
  const alone = await arrivals(5, port, tls)
  const request = refused(directoryUrl)
  const neighbours = [{ repeaters: 60, connectsPerSecond: 0 }, { repeaters: 0, connectsPerSecond: 500 }].map((of) => {
    const workerData: Neighbourly = { port, tls, request, ...of }
    return new Worker(new URL("Neighbour.ts", import.meta.url), { workerData })
  })
  try {
    await Promise.all(neighbours.map((neighbour) => once(neighbour, "online")))
    await delay(2000) // Within this time, a queue that fills becomes full.
    const beside = await arrivals(rounds, port, tls)
    stage.measured(`${beside.text}; alone ${alone.text}`)
    say(`newcomers waited ${beside.text}; alone ${alone.text}`)
    if (beside.median > mostMillis) throw new Error(`newcomers waited ${beside.text}`)
  } finally {
    await Promise.all(neighbours.map((neighbour) => neighbour.terminate()))
  }
  return rounds
}

const newcomers = (tls: boolean): Fault => ({
  name: `starved by connects and bad signatures${tls ? " over TLS" : ""}`,
  databases: ["SQLite"],
  isTimed: true,
  rounds: 30,
  run: async (means) => under(means, { ...await siteOn(means), tls }, among(tls))
})

/** New clients come while others open connections and send requests that are refused, both as fast as they can. */
export const queueing: ReadonlyArray<Fault> = [newcomers(false), newcomers(true)]

import { connect } from "node:net"
import type { TLSSocket } from "node:tls"
import { connect as connectTls } from "node:tls"
import { workerData } from "node:worker_threads"

/*
 * A peer that keeps a listener busy, in a thread of its own, so that the measurement of new clients is not slowed down.
 */

/** The load that this peer causes. */
export interface Neighbourly {
  readonly port: number
  readonly tls: boolean
  /** How many connections are opened in each second. Each sends nothing and is soon closed. */
  readonly connectsPerSecond: number
  /** A whole request that `repeaters` connections send again and again, as soon as it is answered. */
  readonly request: string
  readonly repeaters: number
}

const { connectsPerSecond, port, repeaters, request, tls } = workerData as Neighbourly

const momentMillis = 20
const stepMillis = 5

/** Returns whether a whole answer has arrived, judged by its length. */
const isWhole = (said: string): boolean => {
  const head = said.indexOf("\r\n\r\n")
  const length = /^content-length: (\d+)/im.exec(said)?.[1]
  return head >= 0 && length !== undefined && said.length >= head + 4 + Number(length)
}

const repeat = () => {
  const socket = tls
    ? connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false })
    : connect({ port, host: "127.0.0.1" })
  let said = ""
  socket.on(tls ? "secureConnect" : "connect", () => (socket as TLSSocket).write(request))
  socket.on("data", (chunk: Buffer) => {
    said += chunk.toString("latin1")
    if (!isWhole(said)) return
    said = ""
    socket.write(request)
  })
  socket.on("error", () => undefined)
  socket.on("close", () => setTimeout(repeat, momentMillis))
}

const knock = () => {
  const socket = connect({ port, host: "127.0.0.1", localAddress: "127.0.0.2" })
  socket.on("error", () => undefined)
  socket.on("connect", () => setTimeout(() => socket.destroy(), momentMillis))
}

for (let at = 0; at < repeaters; at++) repeat()
let [owed, last] = [0, performance.now()]
setInterval(() => {
  const now = performance.now()
  owed += (now - last) * connectsPerSecond / 1000
  last = now
  for (; owed >= 1; owed--) knock()
}, stepMillis)

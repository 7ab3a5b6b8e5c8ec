import type { Socket } from "node:net"
import { connect } from "node:net"

/**
 * A connection that may send anything. `ended` resolves to everything that the server sent once the server has closed
 * the connection.
 */
export interface Raw {
  readonly socket: Socket
  readonly ended: Promise<string>
}

/** Opens a connection, from any address of loopback, and sends the first octets. */
export const open = (port: number, first = "", localAddress = "127.0.0.1"): Raw => {
  const socket = connect({ port, host: "127.0.0.1", localAddress })
  let said = ""
  socket.on("data", (chunk: Buffer) => {
    said += chunk.toString("latin1")
  })
  socket.on("error", () => undefined)
  if (first !== "") socket.write(first)
  return { socket, ended: new Promise((done) => socket.once("close", () => done(said))) }
}

/** Sends one octet a second for as long as the server allows it. */
export const drip = (raw: Raw): Raw => {
  const dripping = setInterval(() => raw.socket.write("x"), 1000)
  void raw.ended.then(() => clearInterval(dripping))
  return raw
}

import { randomInt } from "node:crypto"
import { createServer } from "node:net"

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resolve(true)))
  })

/**
 * A TCP port of 127.0.0.1 nobody listens on, below the range the kernel hands to outgoing connections: while a server
 * is down for a restart, none of its own clients can be given its port.
 */
export const freePort = async (): Promise<number> => {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(15_000, 32_000)
    if (await isFree(port)) return port
  }
  throw new Error("found no free port on 127.0.0.1")
}

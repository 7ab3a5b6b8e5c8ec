import { randomInt } from "node:crypto"
import { closeSync, mkdirSync, openSync, rmSync, statSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

const registry = join(tmpdir(), "acme-svc-ports")
const forgottenMillis = 3_600_000
const own = new Set<string>()

process.once("exit", () => {
  for (const file of own) rmSync(file, { force: true })
})

/**
 * Reserves a port for this process as long as it lives, so that no other test process takes the port before a program
 * listens on it or while a server restarts.
 */
const isOurs = (port: number): boolean => {
  mkdirSync(registry, { recursive: true })
  const file = join(registry, String(port))
  try {
    closeSync(openSync(file, "wx"))
  } catch {
    const left = statSync(file, { throwIfNoEntry: false })
    if (left === undefined || Date.now() - left.mtimeMs < forgottenMillis) return false
    rmSync(file, { force: true }) // A killed process left this file. The next attempt finds the port free.
    return false
  }
  own.add(file)
  return true
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resolve(true)))
  })

/**
 * Returns a TCP port of 127.0.0.1 on which no process listens and which no other process gets. The port is below the
 * range that the kernel uses for outgoing connections, so that no client can get the port of a server that restarts.
 */
export const freePort = async (): Promise<number> => {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(15_000, 32_000)
    if (isOurs(port) && (await isFree(port))) return port
  }
  throw new Error("found no free port on 127.0.0.1")
}

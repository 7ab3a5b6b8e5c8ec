import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { writePebbleFiles } from "../../test/support/PebbleFiles.ts"
import { temporaryDirectory } from "./Cleanup.ts"
import { startProcess } from "./Service.ts"
import { Connection, targetOf } from "./Wire.ts"

/*
 * Runs Pebble, the test server of Let's Encrypt, as the upstream of a relay. Pebble keeps everything in memory, and uses
 * only TLS.
 */

/** Returns whether `pebble` is on the path, where Debian's package installs it. */
export const isInstalled = (): boolean => spawnSync("pebble", ["-version"], { stdio: "ignore" }).error === undefined

const isAnswering = async (directoryUrl: string): Promise<boolean> => {
  const target = targetOf(directoryUrl)
  const connection = new Connection(target)
  try {
    await connection.open()
    await connection.send(`HEAD ${new URL(directoryUrl).pathname} HTTP/1.1\r\nhost: ${target.host}\r\n\r\n`, true)
    return true
  } catch {
    return false
  } finally {
    connection.close()
  }
}

/** Starts Pebble so that it neither sleeps nor refuses nonces, and accepts every challenge. */
export const startPebble = async () => {
  const directory = temporaryDirectory()
  const logFile = join(directory, "log.txt")
  const { certificate, config, directoryUrl, privateKey } = await writePebbleFiles(directory)
  const server = startProcess("pebble", ["-config", config], {
    cwd: directory,
    env: {
      PATH: process.env["PATH"],
      PEBBLE_VA_ALWAYS_VALID: "1",
      PEBBLE_VA_NOSLEEP: "1",
      PEBBLE_WFE_NONCEREJECT: "0",
      PEBBLE_AUTHZREUSE: "0"
    },
    logFile
  })
  await server.said("ACME directory available at")
  for (let attempt = 0; attempt < 100 && !await isAnswering(directoryUrl); attempt++) await delay(50)
  return {
    pid: server.pid,
    directoryUrl,
    certificate,
    privateKey,
    /** Returns the number of requests that Pebble has logged so far. */
    requests: () => readFileSync(logFile, "utf8").split(" -> calling handler()").length - 1,
    stop: server.stop
  }
}

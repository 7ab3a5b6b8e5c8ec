import { execFileSync, spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { freePort } from "../test/support/Ports.ts"
import { temporaryDirectory } from "./Cleanup.ts"
import { startProcess } from "./Service.ts"
import { Connection, targetOf } from "./Wire.ts"

/*
 * Let's Encrypt's test server, for comparison: it keeps everything in memory, and speaks nothing but TLS.
 */

/** Whether the program is on the path, as Debian's package puts it. */
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

/** Starts it without sleeps, refused nonces and validation. */
export const startPebble = async () => {
  const directory = temporaryDirectory()
  const [certificate, privateKey] = [join(directory, "cert.pem"), join(directory, "key.pem")]
  const request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost".split(" ")
  execFileSync("openssl", [...request, "-keyout", privateKey, "-out", certificate], { stdio: "ignore" })
  const [port, management] = [await freePort(), await freePort()]
  const config = join(directory, "pebble.json")
  writeFileSync(
    config,
    JSON.stringify({
      pebble: {
        listenAddress: `127.0.0.1:${port}`,
        managementListenAddress: `127.0.0.1:${management}`,
        certificate,
        privateKey,
        httpPort: 5002,
        tlsPort: 5001,
        ocspResponderURL: "",
        externalAccountBindingRequired: false
      }
    })
  )
  const server = startProcess("pebble", ["-config", config], {
    cwd: directory,
    env: {
      PATH: process.env["PATH"],
      PEBBLE_VA_ALWAYS_VALID: "1",
      PEBBLE_VA_NOSLEEP: "1",
      PEBBLE_WFE_NONCEREJECT: "0",
      PEBBLE_AUTHZREUSE: "0"
    },
    logFile: join(directory, "log.txt")
  })
  await server.said("ACME directory available at")
  const directoryUrl = `https://127.0.0.1:${port}/dir`
  for (let attempt = 0; attempt < 100 && !await isAnswering(directoryUrl); attempt++) await delay(50)
  return { pid: server.pid, directoryUrl, stop: server.stop }
}

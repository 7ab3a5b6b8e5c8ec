import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { freePort } from "./Ports.ts"

/** The settings of Pebble, Let's Encrypt's test server. */
export interface PebbleFiles {
  /** The file for `-config`. */
  readonly config: string
  readonly directoryUrl: string
  /** The URL that serves its root certificate and the state of certificates. */
  readonly managementUrl: string
  /** Its TLS certificate, which is self-signed. */
  readonly certificate: string
  readonly privateKey: string
}

/** The certificate profiles that a Pebble offers, by name. Versions before 2.6 know none. */
export interface PebbleProfiles {
  readonly [name: string]: { readonly description: string; readonly validityPeriod: number }
}

/** Writes the files of one Pebble on loopback, which validates http-01 at `httpPort`. */
export const writePebbleFiles = async (
  directory: string,
  httpPort = 5002,
  profiles?: PebbleProfiles
): Promise<PebbleFiles> => {
  const [certificate, privateKey] = [join(directory, "cert.pem"), join(directory, "key.pem")]
  const request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost".split(" ")
  const names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
  execFileSync("openssl", [...request, ...names, "-keyout", privateKey, "-out", certificate], { stdio: "ignore" })
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
        httpPort,
        tlsPort: 5001,
        ocspResponderURL: "",
        externalAccountBindingRequired: false,
        ...profiles === undefined ? {} : { profiles }
      }
    })
  )
  return {
    config,
    certificate,
    privateKey,
    directoryUrl: `https://127.0.0.1:${port}/dir`,
    managementUrl: `https://127.0.0.1:${management}`
  }
}

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { request } from "node:https"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { writePebbleFiles } from "../support/PebbleFiles.ts"
import { startForeground } from "./Command.ts"

/** A running Pebble that is the upstream CA of a relay. */
export interface Pebble {
  readonly directoryUrl: string
  /** The certificate that Pebble shows, in PEM, which relays must trust. */
  readonly shown: string
  /** A file with the root certificate, in PEM. */
  readonly rootFile: string
  /** Returns the state of a certificate at Pebble, by the hexadecimal serial number. */
  readonly stateOf: (serial: string) => Promise<string>
  /** Returns how many orders Pebble has opened, for all accounts. */
  readonly orders: () => number
  readonly stop: () => Promise<void>
}

/** How Pebble is started. */
export interface PebbleOptions {
  /** The server at which names are looked up. */
  readonly nameServer: string
  /** The port at which http-01 answers are requested. */
  readonly httpPort: number
  /** Whether Pebble accepts every challenge without a check. */
  readonly believes: boolean
}

const isListening = ({ hostname, port }: URL): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false)).once("close", () => resolve(false))
    socket.once("connect", () => socket.destroy())
  })

/** The percentage of nonces that Pebble refuses when they are used. */
const refusedNonces = 20

/** Starts a Pebble that refuses a fifth of the nonces that it gets. */
export const startPebble = async ({ believes, httpPort, nameServer }: PebbleOptions): Promise<Pebble> => {
  const directory = mkdtempSync(join(tmpdir(), "acme-pebble-"))
  const files = await writePebbleFiles(directory, httpPort)
  const pebble = await startForeground("pebble", ["-config", files.config, "-dnsserver", nameServer], {
    cwd: directory,
    env: {
      PEBBLE_WFE_NONCEREJECT: `${refusedNonces}`,
      PEBBLE_VA_NOSLEEP: "1",
      ...believes ? { PEBBLE_VA_ALWAYS_VALID: "1" } : {}
    },
    ready: /ACME directory available at/
  })
  const ca = readFileSync(files.certificate)
  const asked = (path: string) =>
    new Promise<string>((resolve, reject) => {
      const outgoing = request(`${files.managementUrl}${path}`, { ca, agent: false }, (incoming) => {
        let text = ""
        incoming.setEncoding("utf8").on("data", (part: string) => text += part).once("end", () => resolve(text))
      })
      outgoing.once("error", reject).end()
    })
  // Pebble reports that it listens before it does so, and its two listeners start one after the other.
  const begun = async (url: string) => {
    for (let tries = 0; tries < 200; tries++) {
      if (await isListening(new URL(url))) return
      await delay(50)
    }
    throw new Error(`Pebble does not listen at ${url}`)
  }
  for (const url of [files.directoryUrl, files.managementUrl]) await begun(url)
  const rootFile = join(directory, "root.pem")
  writeFileSync(rootFile, await asked("/roots/0"))
  return {
    directoryUrl: files.directoryUrl,
    shown: ca.toString(),
    rootFile,
    stateOf: async (serial) => {
      const { Status } = JSON.parse(await asked(`/cert-status-by-serial/${serial}`)) as { readonly Status?: string }
      return Status ?? "unknown"
    },
    orders: () => pebble.count(/Added order "/),
    stop: async () => {
      await pebble.stop()
      rmSync(directory, { recursive: true, force: true })
    }
  }
}

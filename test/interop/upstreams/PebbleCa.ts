import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { PebbleProfiles } from "../../support/PebbleFiles.ts"
import { writePebbleFiles } from "../../support/PebbleFiles.ts"
import { startForeground } from "../Command.ts"
import { buildInto, keptAt } from "./Kept.ts"
import type { Upstream } from "./Upstream.ts"

const version = "v2.10.1"
const folder = keptAt("pebble", version)
const program = join(folder, "pebble")

/**
 * Starts this Pebble with its own profiles, or with the given ones. It accepts every challenge without a check, and
 * offers this number of alternate chains for every certificate.
 */
export const startPebbleOf = async (profiles?: PebbleProfiles, alternates = 0) => {
  const directory = mkdtempSync(join(tmpdir(), "acme-pebble-"))
  const { certificate, config, directoryUrl } = await writePebbleFiles(directory, undefined, profiles)
  const running = await startForeground(program, ["-config", config], {
    cwd: directory,
    env: {
      PEBBLE_VA_NOSLEEP: "1",
      PEBBLE_VA_ALWAYS_VALID: "1",
      PEBBLE_WFE_NONCEREJECT: "5",
      PEBBLE_AUTHZREUSE: "0",
      PEBBLE_ALTERNATE_ROOTS: `${alternates}`
    },
    ready: /ACME directory available at/
  })
  return {
    certificate,
    directoryUrl,
    stop: async () => {
      await running.stop()
      rmSync(directory, { recursive: true, force: true })
    }
  }
}

/** Let's Encrypt's Pebble, which accepts every challenge without a check. */
export const pebble: Upstream = {
  name: "Pebble",
  version,
  isOfGate: true,
  isReference: true,
  strategy: "bypass",
  takesReasons: true,
  lists: "whole",
  installer: "go",
  isThere: () => existsSync(program),
  install: () => buildInto(folder, `github.com/letsencrypt/pebble/v2/cmd/pebble@${version}`),
  start: async () => {
    const { directoryUrl, stop } = await startPebbleOf()
    const url = new URL(directoryUrl)
    return { host: url.hostname, port: Number(url.port), directoryFor: () => Promise.resolve(url.pathname), stop }
  }
}

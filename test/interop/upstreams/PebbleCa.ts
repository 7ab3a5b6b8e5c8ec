import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { writePebbleFiles } from "../../support/PebbleFiles.ts"
import { startForeground } from "../Command.ts"
import { buildInto, keptAt } from "./Kept.ts"
import type { Upstream } from "./Upstream.ts"

const version = "v2.10.1"
const folder = keptAt("pebble", version)
const program = join(folder, "pebble")

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
    const directory = mkdtempSync(join(tmpdir(), "acme-pebble-"))
    const files = await writePebbleFiles(directory)
    const running = await startForeground(program, ["-config", files.config], {
      cwd: directory,
      env: { PEBBLE_VA_NOSLEEP: "1", PEBBLE_VA_ALWAYS_VALID: "1", PEBBLE_WFE_NONCEREJECT: "5", PEBBLE_AUTHZREUSE: "0" },
      ready: /ACME directory available at/
    })
    const url = new URL(files.directoryUrl)
    return {
      host: url.hostname,
      port: Number(url.port),
      directoryFor: () => Promise.resolve(url.pathname),
      stop: async () => {
        await running.stop()
        rmSync(directory, { recursive: true, force: true })
      }
    }
  }
}

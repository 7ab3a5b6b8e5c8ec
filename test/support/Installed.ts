import { spawnSync } from "node:child_process"
import { assert } from "vitest"
import { text } from "./Documents.ts"

/* Clients that may be absent. */

/** Whether a client is installed. */
export const isInstalled = (name: "certbot" | "curl" | "lego" | "pebble"): boolean =>
  spawnSync("sh", ["-c", `command -v ${name}`], { stdio: "ignore" }).status === 0

/** Whether the clients of the documents are installed. */
export const client = { certbot: isInstalled("certbot"), curl: isInstalled("curl"), lego: isInstalled("lego") }

/**
 * A line for an absent client. The gate installs the client for its interop run, and runs the documents once more after
 * that.
 */
export const gateComesBack = (): void =>
  assert.match(
    text(".ci/run"),
    /^steadied npm run interop$[^]*^if \[ "\$had_clients" = false \]; then step npm test -- docs\/; fi$/m
  )

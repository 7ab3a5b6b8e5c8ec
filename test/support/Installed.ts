import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert } from "vitest"
import { text } from "./Documents.ts"

/* Clients that may be absent. */

/** Returns whether a client is installed. */
export const isInstalled = (
  name:
    | "certbot"
    | "certtool"
    | "curl"
    | "gcc"
    | "javac"
    | "lego"
    | "openssl"
    | "pebble"
    | "pgbouncer"
    | "softhsm2-util"
    | "strace"
): boolean => spawnSync("sh", ["-c", `command -v ${name}`], { stdio: "ignore" }).status === 0

/** Whether the clients of the documents are installed. */
export const client = { certbot: isInstalled("certbot"), curl: isInstalled("curl"), lego: isInstalled("lego") }

/** The folder of the PostgreSQL programs that operators use, or undefined unless `npm run postgres` names one. */
export const postgresPrograms: string | undefined =
  ((folder) => folder !== undefined && existsSync(join(folder, "psql")) ? folder : undefined)(
    process.env["ACME_TEST_POSTGRES_BIN"]
  )

/** Checks that the gate runs lines for PostgreSQL's programs, which only that step of the gate has. */
export const gateHasPostgres = (): void => assert.match(text(".ci/run"), /^steadied npm run postgres$/m)

/**
 * Checks that the gate runs lines for an absent client. The gate installs the client for the interop run, and then runs
 * the documents once more.
 */
export const gateComesBack = (): void =>
  assert.match(
    text(".ci/run"),
    /^steadied npm run interop$[^]*^if \[ "\$had_clients" = false \]; then step npm test -- docs\/; fi$/m
  )

/**
 * Checks that the gate runs tests with keys of a CA elsewhere, for which a token, a compiler or OpenBao is missing. The
 * gate installs them for the interop run, and then runs these tests once more.
 */
export const gateComesBackForTokens = (): void =>
  assert.match(
    text(".ci/run"),
    /^steadied npm run interop$[^]*^if \[ "\$had_tokens" = false \]; then step npm test -- engine\/token services\/signing [^;]+; fi$/m
  )

/** Checks that the gate verifies chains with GnuTLS and Java, which the ceremony of the interop run installs. */
export const gateVerifiesElsewhere = (): void => {
  assert.match(text(".ci/run"), /^steadied npm run interop$/m)
  assert.match(text("test/interop/main.ts"), /isChosen\("ceremony"\) \? ceremonyCommands/)
}

import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { writePebbleFiles } from "../../support/PebbleFiles.ts"
import { runCommand, startForeground } from "../Command.ts"

/* Real upstreams, pinned, as a relay meets them: each behind proxies, and each taking this service's word or proofs. */

/** An upstream that is not started yet. */
export interface Upstream {
  readonly name: string
  readonly version: string
  /** Part of the short run too. */
  readonly isOfGate: boolean
  /** Whether it takes revocations, with which reasons. */
  readonly revokes: boolean
  /** Whether its programs are in the kept folder. */
  readonly isThere: () => boolean
  /** Fetches or builds them. */
  readonly install: () => Promise<void>
  /** Starts it. */
  readonly start: () => Promise<Started>
}

/** An upstream at work. */
export interface Started {
  readonly host: string
  readonly port: number
  /** The path of its directory. */
  readonly directory: string
  readonly stop: () => Promise<void>
}

/** Where programs are kept from one run to the next. */
const keptFolder = process.env["ACME_UPSTREAMS"] ??
  join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "acme-svc", "upstreams")

const programAt = (name: string): string => join(keptFolder, "bin", name)

const build = async (...modules: ReadonlyArray<string>): Promise<void> => {
  mkdirSync(keptFolder, { recursive: true })
  for (const module of modules) {
    await runCommand("go", ["install", module], {
      env: { ...process.env as Record<string, string>, CGO_ENABLED: "0", GOBIN: join(keptFolder, "bin") },
      timeoutMs: 900_000
    })
  }
}

const pebbleVersion = "v2.10.1"

const pebble: Upstream = {
  name: "Pebble",
  version: pebbleVersion,
  isOfGate: true,
  revokes: true,
  isThere: () => existsSync(programAt("pebble")),
  install: () => build(`github.com/letsencrypt/pebble/v2/cmd/pebble@${pebbleVersion}`),
  start: async () => {
    const directory = mkdtempSync(join(tmpdir(), "acme-pebble-"))
    const files = await writePebbleFiles(directory)
    const running = await startForeground(programAt("pebble"), ["-config", files.config], {
      cwd: directory,
      env: { PEBBLE_VA_NOSLEEP: "1", PEBBLE_VA_ALWAYS_VALID: "1", PEBBLE_WFE_NONCEREJECT: "5", PEBBLE_AUTHZREUSE: "0" },
      ready: /ACME directory available at/
    })
    const url = new URL(files.directoryUrl)
    return {
      host: url.hostname,
      port: Number(url.port),
      directory: url.pathname,
      stop: async () => {
        await running.stop()
        rmSync(directory, { recursive: true, force: true })
      }
    }
  }
}

/** Every upstream there is to try. */
export const upstreams: ReadonlyArray<Upstream> = [pebble]

/** A key pair for proxies on loopback, which relays are told to trust. */
export const makePair = (directory: string) => {
  const [certificate, key] = [join(directory, "proxy.pem"), join(directory, "proxy.key")]
  const request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost".split(" ")
  const names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
  execFileSync("openssl", [...request, ...names, "-keyout", key, "-out", certificate], { stdio: "ignore" })
  return { cert: readFileSync(certificate), key: readFileSync(key), certificate }
}

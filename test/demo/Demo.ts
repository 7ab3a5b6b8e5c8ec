import { X509Certificate } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { json } from "node:stream/consumers"
import { AcmeSession } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { layCa } from "../support/LaidCa.ts"
import { freePort } from "../support/Ports.ts"
import type { Server } from "../support/Server.ts"
import { runToEnd, startServer } from "../support/Server.ts"
import type { DemoPlace, DemoState } from "./DemoState.ts"
import { writeHistory } from "./History.ts"
import { pastSigner } from "./PastCertificates.ts"
import { states } from "./States.ts"
import type { StateName } from "./States.ts"

/*
 * An instance of the service with content on every page, for people to look at, for the browser tests, and for the
 * pictures of the documents.
 */

/** A person who can sign in. */
export interface DemoOperator {
  readonly username: string
  readonly password: string
  readonly role: "viewer" | "operator" | "admin"
}

/** The operators of every demo. */
export const operators: ReadonlyArray<DemoOperator> = [
  { username: "ann", password: "Amber kettle by the quay", role: "admin" },
  { username: "olga", password: "Seven quiet lighthouses", role: "operator" },
  { username: "viktor", password: "Paper boats at midnight", role: "viewer" }
]

/** A running demo. */
export interface Demo {
  /** The URL of the panel. */
  readonly url: string
  /** The URL of the ACME endpoints. */
  readonly acmeUrl: string
  /** The directory with the configuration, the database and the CAs. */
  readonly directory: string
  /** Registers an account at an endpoint, and returns the ACME session. */
  readonly client: (profile: string) => Promise<AcmeSession>
  /** Makes another operator. */
  readonly enlist: (operator: DemoOperator) => Promise<void>
  /** Runs a command of the service, which must succeed, and returns its output. */
  readonly command: (words: ReadonlyArray<string>) => Promise<string>
  readonly stop: () => Promise<void>
}

/** How a demo is made. */
export interface DemoOptions {
  readonly port?: number
  readonly adminPort?: number
  /** Further sections of the configuration. */
  readonly toml?: string
  /** The state in which the demo begins, by default `full`. */
  readonly state?: StateName
  /** Reports the progress. */
  readonly tell?: (text: string) => void
}

const configOf = (upstream: string, more: string): string => `
[signer]
backend = "local_ca"

[challenge]
enabled = ["http-01", "dns-01"]
allow_loopback = true

[eab]
enabled = false

[filter]
rules = ["offices", "names"]
default = "allow"
[filter.check.office]
type = "allowed_ip"
allow = ["127.0.0.0/8", "192.0.2.0/24"]
[filter.check.ours]
type = "identifiers"
allow = ["corp.example", "*.corp.example"]
[filter.rule.offices]
when = "not office"
then = "deny"
message = "Only the offices order here."
[filter.rule.names]
when = "not ours"
then = "deny"
message = "These are not names of ours."

[notify]
enabled = ["webhook"]
webhook_enabled = ["chat"]
[notify.webhook.chat]
url = "${upstream}/chat"

[profiles.corp]
[profiles.corp.challenge]
bypass = true
enabled = ["http-01", "dns-01"]

[profiles.edge]
[profiles.edge.signer]
backend = "local_ca"
[profiles.edge.signer.local_ca]
cert_path = "edge.pem"
key_path = "edge.key"
crl_path = "edge.crl"
leaf_validity_days = 5
[profiles.edge.challenge]
bypass = true

[profiles.script]
[profiles.script.signer]
backend = "custom"
[profiles.script.signer.custom]
script_path = "/bin/false"
[profiles.script.challenge]
bypass = true

[profiles.public]
[profiles.public.signer]
backend = "relay"
[profiles.public.signer.relay]
directory_url = "${upstream}/directory"
[profiles.public.challenge]
bypass = true
${more}`

/** Starts an upstream that takes orders and never finishes one. */
const slowUpstream = async () => {
  const orders: Array<unknown> = []
  const server = createServer(async (request, response) => {
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const at = (request.url ?? "").split("?")[0] ?? ""
    const headers = { "replay-nonce": `n${Math.random().toString(36).slice(2)}`, "content-type": "application/json" }
    const answer = (status: number, body: object, more: object = {}) =>
      response.writeHead(status, { ...headers, ...more }).end(JSON.stringify(body))
    if (at === "/directory") {
      return answer(200, {
        newNonce: `${base}/nonce`,
        newAccount: `${base}/account`,
        newOrder: `${base}/orders`,
        revokeCert: `${base}/revoke`,
        keyChange: `${base}/key`
      })
    }
    if (at === "/nonce") return response.writeHead(200, headers).end()
    if (at === "/account") {
      return answer(201, { status: "valid", orders: `${base}/list` }, { location: `${base}/account/1` })
    }
    if (at === "/list") return answer(200, { orders: [] })
    const { payload } = (await json(request)) as { readonly payload: string }
    if (at === "/orders") orders.push(JSON.parse(Buffer.from(payload, "base64url").toString()).identifiers)
    const number = at === "/orders" ? orders.length : Number(at.split("/")[2])
    const location = `${base}/order/${number}`
    const order = { identifiers: orders[number - 1], authorizations: [], finalize: `${location}/finalize` }
    if (at === "/orders") return answer(201, { ...order, status: "ready" }, { location })
    return answer(200, { ...order, status: "processing" }, { "retry-after": "60", location })
  })
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise<void>((done) => void server.close(() => done()).closeAllConnections())
  }
}

const populate = async (client: Demo["client"], tell: (text: string) => void) => {
  tell("clients register and order")
  const corp = await client("corp")
  await corp.register({ termsOfServiceAgreed: true, contact: ["mailto:platform@corp.example"] })
  const issued = []
  for (
    const names of [
      ["www.corp.example", "corp.example"],
      ["intranet.corp.example"],
      ["grafana.corp.example"],
      ["gitea.corp.example", "git-lfs.corp.example"],
      ["mx1.corp.example", "mx2.corp.example", "smtp.corp.example", "imap.corp.example", "autodiscover.corp.example"]
    ]
  ) issued.push(await corp.issue(names, new Map()))
  await corp.newOrder(["pending.corp.example"])
  const edge = await client("edge")
  await edge.register({ termsOfServiceAgreed: true, contact: ["mailto:edge@corp.example"] })
  for (let node = 1; node <= 4; node++) await edge.issue([`edge-${node}.corp.example`], new Map())
  const relayed = await client("public")
  await relayed.register({ termsOfServiceAgreed: true })
  return { corp, issued, relayed }
}

/** Starts a demo, which is complete when the promise resolves. */
export const startDemo = async (options: DemoOptions = {}): Promise<Demo> => {
  const { tell = () => {}, toml = "" } = options
  const state: DemoState = states[options.state ?? "full"]
  const upstream = await slowUpstream()
  const [port, adminPort] = [options.port ?? await freePort(), options.adminPort ?? await freePort()]
  const url = `http://localhost:${adminPort}`
  const directory = mkdtempSync(join(tmpdir(), "acme-demo-"))
  const env = {
    ACME_SVC_ADMIN__ENABLED: "true",
    ACME_SVC_ADMIN__BIND_ADDRESS: `127.0.0.1:${adminPort}`,
    ACME_SVC_ADMIN__BASE_URL: url,
    ACME_SVC_LOGGING__FILTER: "info"
  }
  const now = Math.floor(Date.now() / 1000)
  const config = configOf(upstream.url, `${toml}${state.toml?.(now) ?? ""}`)
  let server: Server | undefined
  const end = async () => {
    await server?.stop()
    await upstream.close()
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
  }
  const command = async (words: ReadonlyArray<string>) => {
    const { code, stderr, stdout } = await runToEnd(words, { config, directory, env })
    if (code !== 0) throw new Error(`acme-svc ${words.join(" ")} ended with ${code}\n${stderr}${stdout}`)
    return stdout
  }
  const enlist = async ({ password, role, username }: DemoOperator) => {
    const file = join(directory, "password")
    writeFileSync(file, password, { mode: 0o600 })
    const words = ["--role", role, "--password-file", file, "--contact", `${username}@corp.example`]
    await command(["admin", "user", "create", username, ...words])
    rmSync(file)
  }
  const start = async (flags: ReadonlyArray<string> = []) => {
    server = await startServer({ config, directory, env, port, flags })
    return server
  }
  const place: DemoPlace = {
    directory,
    database: join(directory, "sqlite.db"),
    now,
    tell,
    command,
    waitForEvent: async (event) => void await server?.waitForEvent(event)
  }
  try {
    tell("the database and the CAs are made")
    await layCa({ directory, commonName: "Corp Issuing CA", end: now + 2900 * 86_400 })
    await layCa({ directory, name: "edge", commonName: "Edge CA", end: now + 1200 * 86_400 })
    await state.before?.(place)
    await command(["init"])
    for (const operator of operators) await enlist(operator)
    if (state.hasHistory) {
      tell("a month of history is written")
      writeHistory(place.database, now, pastSigner(directory, "ca"))
    }
    await state.filled?.(place)
    let started = await start()
    const client = (profile: string) => AcmeSession.open(started.profileUrl(profile))
    if (state.hasHistory) {
      await command(["eab", "create", "--label", "Build farm"])
      await command(["eab", "create", "--label", "Edge nodes", "--profile", "edge"])
      const { corp, issued, relayed } = await populate(client, tell)
      const revoked = new X509Certificate(issued[2]?.chain ?? "").raw.toString("base64url")
      await corp.post(corp.directory.revokeCert ?? "", { certificate: revoked, reason: 4 })
      const waiting = await relayed.newOrder(["relayed.corp.example"])
      await relayed.authorize(waiting.body, new Map())
      await relayed.finalize(waiting.body, makeCsr({ names: ["relayed.corp.example"] }).csr)
    }
    await state.running?.(place)
    if (state.stopped !== undefined) {
      await started.stop()
      await state.stopped(place)
      started = await start(state.flags)
    }
    return {
      url,
      acmeUrl: started.baseUrl,
      directory,
      client,
      enlist,
      command,
      stop: end
    }
  } catch (error) {
    await end()
    throw error
  }
}

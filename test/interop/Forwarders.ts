import { randomBytes } from "node:crypto"
import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { AcmeSession } from "../support/AcmeSession.ts"
import { startDnsAnswerer } from "../support/DnsAnswerer.ts"
import { makeHttpClient } from "../support/Http.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import { verifyChain } from "../support/Openssl.ts"
import { freePort } from "../support/Ports.ts"
import { open } from "../support/RawClient.ts"
import type { Server } from "../support/Server.ts"
import { startServer } from "../support/Server.ts"
import { runCommand } from "./Command.ts"
import type { Forwarder } from "./Recipes.ts"
import { forwarders, forwarding } from "./Recipes.ts"
import type { Outcome } from "./Table.ts"

/*
 * The forwarder that the relay's http01 needs on port 80. A service relays to a second service, which validates through
 * a forwarder with each of the recipes in docs/recipes/.
 */

const docs = resolve(import.meta.dirname, "../../docs")
const prefix = "/.well-known/acme-challenge/"

const check = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(what)
}

/** Sends a request line as it is, and returns everything that was received. */
const raw = (port: number, line: string, headers: ReadonlyArray<string> = [], body = ""): Promise<string> => {
  const all = ["Host: www.example.org", "X-Request-Id: forged", "X-Forwarded-For: 203.0.113.9", ...headers]
  return open(port, [`${line} HTTP/1.1`, ...all, "Connection: close", "", body].join("\r\n")).ended
}

/** A service whose relay's tokens are answered through a forwarder. */
interface Relay {
  readonly server: Server
  /** The place of the server's certificate, if the server speaks TLS. */
  readonly trust: string | undefined
}

/** One forwarder in front of one relay. `profile` is the profile whose upstream CA looks for tokens at `port`. */
interface Stage {
  readonly forwarder: Forwarder
  readonly relay: Relay
  readonly profile: string
  readonly port: number
  readonly upstream: Server
}

const stands = (token: string) => `${token}.${"k".repeat(43)}`

/** Stores a token where the relay stores its own tokens. */
const publish = async ({ relay: { server } }: Stage, token: string): Promise<void> => {
  const now = Math.floor(Date.now() / 1000)
  await sqlAt(
    `sqlite://${join(server.directory, "sqlite.db")}`,
    `INSERT INTO http01_tokens (token, key_authorization, created_at, expires_at)
     VALUES ('${token}', '${stands(token)}', ${now}, ${now + 600})`
  )
}

/** Returns the line of the document with the values of this forwarder. */
const documented = (port: number): string => {
  const [, line] = /^(curl .*)$/m.exec(readFileSync(join(docs, "configure/signers.md"), "utf8")) ?? []
  if (line === undefined) throw new Error("docs/configure/signers.md has no line for curl")
  return line.replace("http://www.example.org/", `http://127.0.0.1:${port}/`)
}

const answersTokens = async (stage: Stage): Promise<void> => {
  const http = makeHttpClient()
  try {
    const token = `aZ09_-${randomBytes(16).toString("base64url")}`
    await publish(stage, token)
    const at = (path: string) => `http://127.0.0.1:${stage.port}${prefix}${path}`
    const known = await http.send(at(token))
    check(known.status === 200, `a known token is answered ${known.status}`)
    check(known.text === stands(token), `not verbatim: ${known.text}`)
    check(known.headers["content-type"] === "application/octet-stream", "with another content type")
    check(known.headers["strict-transport-security"] === undefined, "the service speaks for the host")
    const head = await http.send(at(token), { method: "HEAD" })
    check(head.status === 200 && head.text === "", `HEAD is answered ${head.status}`)
    const unknown = await http.send(at("unknown"))
    check(unknown.status === 404 && unknown.text === "There is no such token.\n", `unknown: ${unknown.text}`)
    const said = await runCommand("sh", ["-c", documented(stage.port)])
    check(/^HTTP\/1\.1 404 /m.test(said) && said.includes("There is no such token."), `curl says ${said}`)
  } finally {
    http.close()
  }
}

/** None of these requests may reach the service. `T` is a token that the service knows. */
const refused = [
  ...["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get"].map((method) => `${method} ${prefix}T`),
  ...["", ".", "..", "T/", "T/x", "T.x", "T%2Fx", "T%2fx", "T;x", "T%", "T%00", "T%20", "T:x", "é"].map((path) =>
    `GET ${prefix}${path}`
  ),
  ...["/", "*", "/health", "/metrics", "/profile/P/directory", "/profile/P/crl", "/.WELL-KNOWN/acme-challenge/T"].map(
    (path) => `GET ${path}`
  ),
  `GET ${prefix}../../profile/P/directory`,
  `GET ${prefix}..%2f..%2fprofile/P/directory`,
  `GET ${prefix}%2e%2e/%2e%2e/profile/P/directory`,
  `GET ${prefix}T/../../../profile/P/directory`,
  `GET ${prefix}T%3f/../../../health`,
  `GET ${prefix}T\\..\\..\\..\\health`,
  `GET //${prefix}../../health`,
  `GET /x${prefix}T`,
  `GET http://127.0.0.1:3000/profile/P/directory`,
  `CONNECT 127.0.0.1:3000`
]

/** These requests may count as requests for the token to which they resolve, but for nothing else. */
const resolved = [
  `GET ${prefix}T?x=y`,
  `GET ${prefix}T?/../../../health`,
  `GET ${prefix}%54`,
  `GET ${prefix}T%0a`,
  `GET ${prefix}T#/../../../health`,
  `GET //.well-known//acme-challenge//T`,
  `GET /.well-known%2facme-challenge%2fT`,
  `GET ${prefix}x/../T`,
  `GET ${prefix}/T`,
  `GET /profile/P/directory/../../..${prefix}T`,
  `GET /profile/P/%2e%2e/%2e%2e${prefix}T`,
  `GET http://www.example.org${prefix}T`
]

const forwardsNothingElse = async (stage: Stage): Promise<void> => {
  const { port, profile, relay: { server } } = stage
  const token = `T${randomBytes(16).toString("base64url")}`
  await publish(stage, token)
  const lines = (list: ReadonlyArray<string>) =>
    list.map((line) => line.replace(/T(?=$|[/.%;:?#\\])/, token).replace("/P/", `/${profile}/`))

  const completed = () => server.records().filter(({ fields }) => fields["event"] === "request_completed")
  /**
   * Waits until everything that has reached the service so far is in the log, by a last request that is logged after
   * all others.
   */
  const settled = async () => {
    const last = `${prefix}${randomBytes(16).toString("base64url")}`
    await raw(port, `GET ${last}`)
    await server.waitForEvent("request_completed", { where: ({ span }) => span["uri"] === last })
    return completed().length
  }
  /** Returns the lines of the service's log about requests that arrived while `send` ran. */
  const met = async (send: () => Promise<unknown>) => {
    const before = completed().length
    await send()
    return completed().slice(before, await settled() - 1)
  }
  const shown = (records: ReadonlyArray<{ readonly span: unknown }>) => JSON.stringify(records.map(({ span }) => span))

  await settled()
  for (const line of lines(refused)) {
    const reached = await met(async () => {
      const answer = await raw(port, line)
      check(/^HTTP\/1\.[01] [45]\d\d /.test(answer), `${line} is answered ${answer}`)
    })
    check(reached.length === 0, `${line} reached the service: ${shown(reached)}`)
  }
  const known = `GET ${prefix}${token}`
  const chunked = "Transfer-Encoding: chunked"
  const bodies = [
    raw(port, known, ["Content-Length: 3"], "abc"),
    raw(port, known, [chunked], "3\r\nabc\r\n0\r\n\r\n"),
    // If the forwarder used one of the two lengths and the service the other, these would be two requests.
    raw(port, known, ["Content-Length: 40", chunked], "0\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n")
  ]
  const reached = await met(() => Promise.all([...bodies, ...lines(resolved).map((line) => raw(port, line))]))
  const strays = reached.filter(({ span: { client_ip, method, request_id, uri } }) =>
    !(method === "GET" || method === "HEAD") || typeof uri !== "string" ||
    !uri.startsWith(prefix) || !/^[A-Za-z0-9_-]+$/.test(uri.slice(prefix.length)) ||
    request_id === "forged" || client_ip !== "127.0.0.1"
  )
  check(strays.length === 0, `reached the service: ${shown(strays)}`)
}

const issues = async (stage: Stage): Promise<void> => {
  const { profile, relay: { server }, upstream } = stage
  const session = await AcmeSession.open(server.profileUrl(profile))
  try {
    await session.register()
    const names = [`www.${profile}.example`, `${profile}.example`]
    const { chain } = await session.issue(names, new Map())
    for (const name of names) await verifyChain(chain, upstream.caFile, name)
  } finally {
    session.close()
  }
}

/** Checks what happens if no server listens at the address of the recipe. */
const goesWithout = async ({ forwarder, relay: { trust } }: Stage): Promise<void> => {
  const [port, backend] = [await freePort(), await freePort()]
  await forwarding(forwarder, { port, backend, trust }, async () => {
    const answer = await raw(port, `GET ${prefix}T`)
    check(/^HTTP\/1\.1 50[234] /.test(answer), `without a listener it is answered ${answer}`)
  })
}

/** Checks what happens if the service shows a certificate other than the trusted one. */
const trustsNobodyElse = async ({ forwarder, relay: { server }, upstream }: Stage): Promise<void> => {
  const port = await freePort()
  await forwarding(forwarder, { port, backend: server.port, trust: upstream.caFile }, async () => {
    const answer = await raw(port, `GET ${prefix}T`)
    check(/^HTTP\/1\.1 50\d /.test(answer), `before somebody else it is answered ${answer}`)
  })
}

interface Play {
  readonly name: string
  readonly play: (stage: Stage) => Promise<void>
}

const ofTls: Play = { name: "trusts nobody else", play: trustsNobodyElse }

const plays: ReadonlyArray<Play> = [
  { name: "forwards tokens", play: answersTokens },
  { name: "forwards nothing else", play: forwardsNothingElse },
  { name: "has the upstream validate", play: issues },
  { name: "says that nobody listens", play: goesWithout }
]

/** Plays the forwarders one after another, so that the log of the service is about one of them. */
const playAll = async (stage: Stage, say: (text: string) => void): Promise<ReadonlyArray<Outcome>> => {
  const { forwarder, port, relay: { server, trust } } = stage
  const outcomes: Array<Outcome> = []
  const took = async (name: string, play: () => Promise<unknown>) => {
    const begun = performance.now()
    const error = await play().then(() => undefined, (cause: unknown) => String(cause))
    const scenario = trust === undefined ? name : `${name}, over TLS`
    const milliseconds = performance.now() - begun
    const outcome = { database: "SQLite", client: forwarder.name, challenge: "http-01", scenario, milliseconds }
    outcomes.push(error === undefined ? outcome : { ...outcome, error })
    if (error !== undefined) say(`--- ${forwarder.name} ${scenario}\n${error}\n---`)
  }
  const playInTurn = async () => {
    for (const { name, play } of trust === undefined ? plays : [...plays, ofTls]) await took(name, () => play(stage))
  }
  await forwarding(forwarder, { port, backend: server.port, trust }, playInTurn).catch((cause: unknown) =>
    took("starts", () => Promise.reject(cause))
  )
  return outcomes
}

const slugOf = ({ name }: Forwarder): string => name.toLowerCase()

const relaying = (name: string, upstream: string): string =>
  [
    `[profiles.${name}.signer]`,
    "backend = \"relay\"",
    `[profiles.${name}.signer.relay]`,
    `directory_url = "${upstream}"`,
    `account_key_path = "${name}.key"`,
    "challenge_strategy = \"http01\"",
    "poll_interval_ms = 50",
    ""
  ].join("\n")

/** Plays the chosen forwarders in front of a relay of their own. */
const playBehind = async (
  chosen: ReadonlyArray<Forwarder>,
  tls: boolean,
  say: (text: string) => void
): Promise<ReadonlyArray<Outcome>> => {
  const ports = new Map<Forwarder, number>()
  for (const forwarder of chosen) ports.set(forwarder, await freePort())
  const dns = await startDnsAnswerer({ fallback: { A: ["127.0.0.1"] } })
  try {
    const upstream = await startServer({
      config: [...ports].map(([forwarder, port]) =>
        `[profiles.${slugOf(forwarder)}]\nchallenge.http_01.port = ${port}\n`
      )
        .join(""),
      env: { ACME_SVC_DNS__RESOLVER: dns.address }
    })
    try {
      const port = await freePort()
      const server = await startServer({
        port,
        tls,
        // The host is a name, because forwarders compare names and not addresses.
        env: tls ? { ACME_SVC_SERVER__BASE_URL: `https://localhost:${port}` } : {},
        config: "[challenge]\nbypass = true\n" +
          chosen.map((forwarder) => relaying(slugOf(forwarder), upstream.profileUrl(slugOf(forwarder)))).join("")
      })
      try {
        const relay = { server, trust: tls ? join(server.directory, "server.pem") : undefined }
        const outcomes: Array<Outcome> = []
        for (const [forwarder, port] of ports) {
          const profile = slugOf(forwarder)
          outcomes.push(...await playAll({ forwarder, relay, profile, port, upstream }, say))
        }
        return outcomes
      } finally {
        await server.dispose()
      }
    } finally {
      await upstream.dispose()
    }
  } finally {
    await dns.stop()
  }
}

/** Returns the programs of {@link playForwarders}, either all or those whose names `isChosen` accepts. */
export const forwarderCommands = (isChosen: (name: string) => boolean = () => true): ReadonlyArray<string> => {
  const commands = forwarders.filter(({ name }) => isChosen(name)).map(({ command }) => command)
  return commands.length === 0 ? [] : [...commands, "curl"]
}

/** Plays every recipe in front of a service with plain HTTP, and in front of one with TLS. */
export const playForwarders = async (
  say: (text: string) => void,
  isChosen: (name: string) => boolean = () => true
): Promise<ReadonlyArray<Outcome>> => {
  const chosen = forwarders.filter(({ name }) => isChosen(name))
  if (chosen.length === 0) return []
  return (await Promise.all([false, true].map((tls) => playBehind(chosen, tls, say)))).flat()
}

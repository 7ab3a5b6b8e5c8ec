import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import type { IncomingHttpHeaders } from "node:http"
import { request as plainRequest } from "node:http"
import { request } from "node:https"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { patienceMs } from "../support/Patience.ts"
import { freePort } from "../support/Ports.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, runToEnd, startServer } from "../support/Server.ts"
import type { Foreground } from "./Command.ts"
import { runCommand, startForeground } from "./Command.ts"
import type { Outcome } from "./Table.ts"

/*
 * The reverse proxies of docs/operate/operators.md, in front of the listener of operators, each with the lines of the
 * document except for ports and files. Clients speak TLS to the proxy, from addresses of their own.
 */

const name = "acme-admin.example.org"
const origin = `https://${name}`
const password = "Wrocław tramway, 4 stops"
const document = readFileSync(resolve(import.meta.dirname, "../../docs/operate/operators.md"), "utf8")

/** The addresses of clients, none of which is an address of the proxy. Only a forged header contains the last one. */
const [client, other, third, forged] = ["127.0.0.7", "127.0.0.8", "127.0.0.9", "203.0.113.9"] as const

const check: (holds: boolean, what: string) => asserts holds = (holds, what) => {
  if (!holds) throw new Error(what)
}

/** Returns the block of the document that follows these words. */
const blockBehind = (words: string, language: string): string => {
  const at = document.indexOf(`\n${words}`)
  const [, block] = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(at < 0 ? "" : document.slice(at)) ?? []
  check(block !== undefined, `docs/operate/operators.md has no block behind ${words}`)
  return block
}

const edited = (text: string, edits: ReadonlyArray<readonly [from: string, to: string]>): string =>
  edits.reduce((before, [from, to]) => {
    check(before.includes(from), `the document has nothing like ${from}`)
    return before.replaceAll(from, to)
  }, text)

/** The addresses of a proxy and of the listener, and a folder for everything that the proxy writes. */
interface Site {
  readonly port: number
  readonly backend: number
  readonly directory: string
}

interface Proxy {
  readonly name: string
  readonly command: string
  /**
   * Starts the proxy with the lines of the document. Returns the proxy, and the file of the CA that signed its
   * certificate.
   */
  readonly start: (site: Site) => Promise<{ readonly running: Foreground; readonly trust: string }>
}

const nginx: Proxy = {
  name: "nginx",
  command: "nginx",
  start: async ({ backend, directory, port }) => {
    const [key, certificate] = [join(directory, "acme-admin.key"), join(directory, "acme-admin.pem")]
    const subject = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`]
    const made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    await runCommand("openssl", [...made, ...subject, "-keyout", key, "-out", certificate])
    const recipe = edited(blockBehind("nginx:", "text"), [
      // This replacement comes first, because a port that is inserted elsewhere may begin with these digits.
      ["127.0.0.1:3001", `127.0.0.1:${backend}`],
      ["listen 443 ssl", `listen 127.0.0.1:${port} ssl`],
      ["/etc/ssl/acme-admin.pem", certificate],
      ["/etc/ssl/acme-admin.key", key]
    ])
    const main = join(directory, "nginx.conf")
    const parts = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    const own = ["access_log off;", ...parts.map((part) => `${part}_temp_path ${directory}/${part};`)]
    const text = ["daemon off;", "error_log stderr notice;", `pid ${directory}/nginx.pid;`, "events {}"]
    writeFileSync(main, [...text, "http {", ...own, recipe, "}", ""].join("\n"))
    const words = ["-e", "stderr", "-p", directory, "-c", main]
    const running = await startForeground("nginx", words, { cwd: directory, ready: /start worker process \d/ })
    return { running, trust: certificate }
  }
}

const caddy: Proxy = {
  name: "Caddy",
  command: "caddy",
  start: async ({ backend, directory, port }) => {
    const recipe = edited(blockBehind("Caddy:", "text"), [["127.0.0.1:3001", `127.0.0.1:${backend}`]])
    // The proxy uses its own CA, because no public CA can validate the name, and listens only at this port.
    const here = [
      "{",
      "admin off",
      "local_certs",
      "skip_install_trust",
      "auto_https disable_redirects",
      `https_port ${port}`,
      "default_bind 127.0.0.1",
      "servers {\nprotocols h1 h2\n}",
      `storage file_system ${directory}/caddy`,
      "}",
      ""
    ]
    const file = join(directory, "Caddyfile")
    writeFileSync(file, here.join("\n") + recipe)
    const env = { HOME: directory, XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory }
    const words = ["run", "--config", file, "--adapter", "caddyfile"]
    const running = await startForeground("caddy", words, {
      cwd: directory,
      env,
      ready: /certificate obtained success/
    })
    return { running, trust: join(directory, "caddy/pki/authorities/local/root.crt") }
  }
}

const proxies: ReadonlyArray<Proxy> = [nginx, caddy]

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

interface Ask {
  readonly method?: "GET" | "POST"
  readonly body?: object
  readonly headers?: { readonly [name: string]: string }
  readonly from?: string
}

interface Stage extends Site {
  readonly server: Server
  readonly trust: string
}

const ask = ({ port, trust }: Stage, path: string, { body, from = client, headers = {}, method = "GET" }: Ask = {}) =>
  new Promise<Answer>((done, failed) => {
    const text = body === undefined ? "" : JSON.stringify(body)
    const typed = body === undefined
      ? {}
      : { "content-type": "application/json", "content-length": Buffer.byteLength(text) }
    const asked = request({
      host: "127.0.0.1",
      port,
      path,
      method,
      localAddress: from,
      servername: name,
      ca: readFileSync(trust),
      agent: false,
      headers: { host: name, ...typed, ...headers }
    }, (answer) => {
      const octets: Array<Buffer> = []
      answer.on("data", (chunk: Buffer) => octets.push(chunk))
      answer.on(
        "end",
        () =>
          done({
            status: answer.statusCode ?? 0,
            headers: answer.headers,
            text: Buffer.concat(octets).toString("utf8")
          })
      )
      answer.on("error", failed)
    })
    asked.on("error", failed)
    asked.end(text)
  })

const signIn = (given = password) => ({ method: "POST", body: { username: "ann", password: given } }) as const

/** Returns the headers of requests in a session of ann. */
const session = async (stage: Stage) => {
  const answer = await ask(stage, "/api/session", { ...signIn(), headers: { origin } })
  check(answer.status === 200, `the sign-in was answered ${answer.status}: ${answer.text}`)
  const [cookie = ""] = answer.headers["set-cookie"] ?? []
  check(/^__Host-\S+=\S+; Path=\/; Secure; HttpOnly; SameSite=Strict$/.test(cookie), `the cookie is ${cookie}`)
  const { csrfToken }: { readonly csrfToken: string } = JSON.parse(answer.text)
  return { cookie: cookie.split(";")[0] ?? "", origin, "x-csrf-token": csrfToken }
}

const overTls = async (stage: Stage) => {
  const { headers, status, text } = await ask(stage, "/health")
  check(status === 200 && text.includes("true"), `health is ${status} ${text}`)
  check(headers["strict-transport-security"] !== undefined, "no Strict-Transport-Security")
  const plain = await new Promise<number>((done, failed) => {
    const asked = plainRequest({ host: "127.0.0.1", port: stage.port, path: "/health", agent: false }, (answer) => {
      answer.resume()
      done(answer.statusCode ?? 0)
    })
    asked.on("error", failed)
    asked.end()
  })
  check(plain === 400, `plain HTTP is answered ${plain}`)
}

const fromItsAddress = async (stage: Stage) => {
  const headers = { "x-forwarded-for": forged, "x-real-ip": forged, forwarded: `for=${forged}` }
  const refused = await ask(stage, "/api/session", { ...signIn("not the password"), headers })
  check(refused.status === 401, `a wrong password is answered ${refused.status}`)
  const { fields } = await stage.server.waitForEvent("admin_login_failed", {
    where: (record) => record.fields["client_ip"] !== other
  })
  check(fields["client_ip"] === client, `the log has the address ${String(fields["client_ip"])}`)
  const statuses: Array<number> = []
  for (let time = 0; time < 6; time++) {
    statuses.push((await ask(stage, "/api/session", { ...signIn("not the password"), from: other })).status)
  }
  check(statuses.join() === "401,401,401,401,401,429", `wrong passwords of another address: ${statuses.join()}`)
  check((await ask(stage, "/api/session", signIn())).status === 200, "one address is refused for another one")
}

const tokensOfAddresses = async (stage: Stage) => {
  const held = await session(stage)
  const body = { password, name: "proxied", role: "viewer", expiresInDays: 1, allowedAddresses: [client] }
  const made = await ask(stage, "/api/tokens", { method: "POST", body, headers: held })
  check(made.status === 201, `the token was answered ${made.status}: ${made.text}`)
  const { token }: { readonly token: string } = JSON.parse(made.text)
  const headers = { authorization: `Bearer ${token}`, "x-forwarded-for": client }
  check((await ask(stage, "/api/orders", { headers })).status === 200, "the token is refused from its own address")
  const elsewhere = await ask(stage, "/api/orders", { headers, from: third })
  check(elsewhere.status === 401, `the token is answered ${elsewhere.status} from another address`)
}

const originsAndHosts = async (stage: Stage) => {
  const held = await session(stage)
  check((await ask(stage, "/api/orders", { headers: held })).status === 200, "the session is refused")
  const page = await ask(stage, "/ui", { headers: { cookie: held.cookie, "sec-fetch-site": "none" } })
  check(page.status < 400, `the panel is answered ${page.status}`)
  for (const foreign of ["https://evil.example", "null", `http://${name}`, `${origin}:8443`]) {
    const refused = await ask(stage, "/api/eab", { method: "POST", body: {}, headers: { ...held, origin: foreign } })
    check(refused.status === 403 && refused.text.includes("csrf_failed"), `${foreign} is answered ${refused.status}`)
  }
  const headers = { "x-forwarded-host": "evil.example", "x-forwarded-proto": "http" }
  const { headers: told, text } = await ask(stage, "/ui", { headers })
  check(!`${told.location ?? ""}${text}`.includes("evil.example"), "a forged host is in an answer")
  const created = await ask(stage, "/api/eab", { method: "POST", body: { label: "proxied" }, headers: held })
  check(created.status === 201, `a change is answered ${created.status}: ${created.text}`)
}

const plays = [
  { scenario: "TLS to the proxy", play: overTls },
  { scenario: "address of the client", play: fromItsAddress },
  { scenario: "tokens of one address", play: tokensOfAddresses },
  { scenario: "origins and hosts", play: originsAndHosts }
]

const playBehind = async (proxy: Proxy, say: (text: string) => void): Promise<ReadonlyArray<Outcome>> => {
  const outcomes: Array<Outcome> = []
  const took = async (scenario: string, play: () => Promise<unknown>) => {
    const begun = performance.now()
    const error = await play().then(() => undefined, (cause: unknown) => String(cause))
    const milliseconds = performance.now() - begun
    const outcome = { database: "SQLite", client: `proxy ${proxy.name}`, challenge: "", scenario, milliseconds }
    outcomes.push(error === undefined ? outcome : { ...outcome, error })
    if (error !== undefined) say(`--- ${proxy.name} ${scenario}\n${error}\n---`)
  }
  const directory = mkdtempSync(join(tmpdir(), "acme-proxy-"))
  const [port, backend] = [await freePort(), await freePort()]
  const settings = edited(blockBehind("## Behind a reverse proxy", "toml"), [[
    "127.0.0.1:3001",
    `127.0.0.1:${backend}`
  ]])
  const server = await startServer({ config: `${settings}\n${minimalConfig}` })
  try {
    writeFileSync(join(server.directory, "password"), `${password}\n`, { mode: 0o600 })
    const words = ["admin", "user", "create", "ann", "--password-file", "password"]
    const { code, stderr } = await runToEnd(words, { config: null, directory: server.directory })
    check(code === 0, `ann was not made: ${stderr}`)
    const { running, trust } = await proxy.start({ port, backend, directory })
    try {
      const stage = { port, backend, directory, server, trust }
      await showsCertificate(stage)
      for (const { play, scenario } of plays) await took(scenario, () => play(stage))
    } finally {
      await running.stop()
    }
  } catch (cause) {
    await took("starts", () => Promise.reject(cause))
  } finally {
    await server.dispose()
    rmSync(directory, { recursive: true, force: true })
  }
  return outcomes
}

/** Waits until the proxy shows its certificate. Caddy reports the certificate shortly before using it. */
const showsCertificate = async (stage: Stage): Promise<void> => {
  for (const end = Date.now() + patienceMs;;) {
    try {
      await ask(stage, "/health")
      return
    } catch (cause) {
      if (Date.now() >= end) throw cause
      await delay(50)
    }
  }
}

const isMeant = (isChosen: (name: string) => boolean) => (proxy: Proxy) => isChosen(`proxy ${proxy.name}`)

/** Returns the programs of {@link playProxies}, either all or those whose names `isChosen` accepts. */
export const proxyCommands = (isChosen: (name: string) => boolean = () => true): ReadonlyArray<string> =>
  proxies.filter(isMeant(isChosen)).map(({ command }) => command)

/** Plays every proxy of the document in front of a listener of its own. */
export const playProxies = async (
  say: (text: string) => void,
  isChosen: (name: string) => boolean = () => true
): Promise<ReadonlyArray<Outcome>> =>
  (await Promise.all(proxies.filter(isMeant(isChosen)).map((proxy) => playBehind(proxy, say)))).flat()

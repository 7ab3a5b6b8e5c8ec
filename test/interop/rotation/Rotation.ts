import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { issuerIdOf, leafOf, verifyChain } from "../../support/Openssl.ts"
import { freePort } from "../../support/Ports.ts"
import type { Server } from "../../support/Server.ts"
import { runToEnd, startServer } from "../../support/Server.ts"
import type { Client, Names, Workplace } from "../Client.ts"
import { apache } from "../clients/Apache.ts"
import { certbot, certbot5 } from "../clients/Certbot.ts"
import { lego } from "../clients/Lego.ts"
import { runCommand } from "../Command.ts"
import type { NameServer } from "../NameServer.ts"
import { zone } from "../NameServer.ts"
import { equal, lineWith } from "../Saying.ts"
import type { Outcome } from "../Table.ts"

/*
 * A CA is replaced by one below another root, while clients renew across it (docs/configure/rotation.md, "Replacing the
 * CA"). The old root signs the new CA too, so that a client can choose the chain that its machine trusts. At the end,
 * the old CA is declared compromised.
 */

const clients: ReadonlyArray<Client> = [certbot5, certbot, lego]

/** The clients that renew by themselves when renewal information says so. */
const asking: ReadonlyArray<Client> = [certbot5, apache]

/** The programs that this play needs. */
export const rotationCommands: ReadonlyArray<string> = [
  ...[...clients, ...asking].flatMap(({ commands }) => commands),
  "curl",
  "openssl"
]

const passing = ["--passphrase-file", "passphrase"]

/** How long the new CA waits after it was added, in milliseconds. */
const waitMillis = 6000

interface Site {
  readonly server: Server
  readonly home: string
  readonly nameServer: NameServer
  readonly httpPort: number
}

const run = async (directory: string, ...words: ReadonlyArray<string>): Promise<string> => {
  const { code, stderr, stdout } = await runToEnd(words, { config: null, directory })
  if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}: ${stderr}`)
  return stdout
}

const configIn = (baseUrl: string): string =>
  [
    "[profiles.default.signer.local_ca]",
    `crl_distribution_points = ["${baseUrl}/profile/default/crl/{issuer}"]`,
    `ca_issuer_urls = ["${baseUrl}/profile/default/issuer/{issuer}.cer"]`,
    ""
  ].join("\n")

/** Makes both roots, the CA below the first one, and the next CA with certificates by both. */
const makeCas = async (directory: string): Promise<void> => {
  writeFileSync(join(directory, "passphrase"), "correct horse battery staple\n", { mode: 0o600 })
  for (const [root, name] of [["one", "Root One"], ["two", "Root Two"]] as const) {
    await run(directory, "ca", "init", "--root", root, "--root-only", "--root-name", name, ...passing)
  }
  const sign = async (root: string, request: string) =>
    run(directory, "ca", "sign", request, "--root", root, ...passing, "--yes")
  await run(directory, "ca", "csr", "--out", "ca.csr")
  writeFileSync(join(directory, "ca-answer.pem"), await sign("one", "ca.csr"))
  await run(directory, "ca", "import", "ca-answer.pem")
  const elsewhere = join(directory, "elsewhere")
  mkdirSync(elsewhere)
  writeFileSync(
    join(elsewhere, "config.toml"),
    "[profiles.default.signer.local_ca]\nsubject.common_name = \"Next CA\"\n"
  )
  await run(elsewhere, "ca", "csr", "--out", "next.csr")
  copyFileSync(join(elsewhere, "ca.key"), join(directory, "next.key"))
  copyFileSync(join(elsewhere, "next.csr"), join(directory, "next.csr"))
  writeFileSync(join(directory, "next.pem"), await sign("two", "next.csr"))
  writeFileSync(join(directory, "next-by-one.pem"), await sign("one", "next.csr"))
}

const workplace = (
  { home, httpPort, nameServer, server }: Site,
  client: Client,
  preferredChain?: string
): Workplace => {
  const at = {
    server,
    directoryUrl: server.directoryUrl,
    home: join(home, client.name.replaceAll(" ", "-")),
    challenge: "http-01" as const,
    httpPort,
    alpnPort: httpPort,
    nameServer,
    trust: join(server.directory, "server.pem"),
    ...preferredChain === undefined ? {} : { preferredChain }
  }
  mkdirSync(at.home, { recursive: true })
  return at
}

/** Checks a chain with one root alone, and with the list of the CA that signed it. */
const judge = async ({ server }: Site, chain: string, root: "one" | "two", ca: "ca" | "next", host: string) => {
  const { directory } = server
  const list = join(directory, `${ca}.list`)
  const answer = await fetchList(server, issuerIdOf(join(directory, `${ca}.pem`)))
  writeFileSync(`${list}.der`, answer)
  await runCommand("openssl", ["crl", "-inform", "DER", "-in", `${list}.der`, "-out", list], {
    cwd: directory,
    env: {}
  })
  await verifyChain(chain, join(directory, root, "root.pem"), host, list)
  equal(leafOf(chain).issuer, ca === "next" ? "CN=Next CA" : "CN=ACME Service Local CA", "the CA")
}

const fetchList = async ({ baseUrl, directory }: Server, id: string): Promise<Buffer> => {
  const to = join(directory, "fetched.crl")
  // A worker signs the first list of a CA soon after the reload.
  const patient = ["--retry", "20", "--retry-delay", "1", "--retry-all-errors"]
  const words = ["--silent", "--fail", ...patient, "--cacert", join(directory, "server.pem"), "--output", to]
  await runCommand("curl", [...words, `${baseUrl}/profile/default/crl/${id}`], { cwd: directory, env: {} })
  return readFileSync(to)
}

/** What `crl list` shows. */
interface Shown {
  readonly items: ReadonlyArray<{ readonly issuer: string; readonly issuance?: string; readonly unlisted: number }>
}

/** Waits until OpenSSL refuses a certificate of the first CA because it is on the list. */
const listed = async (site: Site, chain: string, host: string): Promise<void> => {
  for (let tries = 0; tries < 60; tries++) {
    const verdict = await judge(site, chain, "one", "ca", host).then(() => undefined, String)
    if (verdict !== undefined) {
      lineWith(verdict, "certificate revoked")
      return
    }
    await delay(1000)
  }
  throw new Error("the certificate of the compromised CA is not on its list")
}

const hostOf = (
  client: Client,
  of: string
): Names => [`${of}-${client.name.toLowerCase().replaceAll(" ", "-")}.${zone}`]

/** Replaces the CA, and plays one client before and after it. */
export const playRotation = async (
  nameServer: NameServer,
  say: (text: string) => void
): Promise<ReadonlyArray<Outcome>> => {
  const [home, directory] = [mkdtempSync(join(tmpdir(), "acme-rotation-")), mkdtempSync(join(tmpdir(), "acme-cas-"))]
  // Apache gives up the rights of root and must still find its files.
  chmodSync(home, 0o755)
  const outcomes: Array<Outcome> = []
  const [port, httpPort] = [await freePort(), await freePort()]
  try {
    writeFileSync(join(directory, "config.toml"), configIn(`https://127.0.0.1:${port}`))
    await makeCas(directory)
    const server = await startServer({
      config: null,
      directory,
      port,
      tls: true,
      env: {
        ACME_SVC_DNS__RESOLVER: nameServer.address,
        ACME_SVC_CHALLENGE__ENABLED: "http-01",
        ACME_SVC_CHALLENGE__HTTP_01__PORT: `${httpPort}`
      }
    })
    const site = { server, home, nameServer, httpPort }
    const tell = async (client: Client, scenario: string, play: () => Promise<void>) => {
      const begun = performance.now()
      const error = await play().then(() => undefined, (cause: unknown) => String(cause))
      const outcome = {
        database: "SQLite",
        client: client.name,
        challenge: "http-01",
        scenario,
        milliseconds: performance.now() - begun
      }
      outcomes.push(error === undefined ? outcome : { ...outcome, error })
      if (error !== undefined) say(`--- ${client.name}, ${scenario}\n${error}\n---`)
    }
    try {
      for (const client of clients) {
        await tell(client, "issues before the rotation", async () => {
          const names = hostOf(client, "across")
          const at = workplace(site, client)
          await client.issue(at, names)
          await judge(site, client.chain(at, names, names[0]), "one", "ca", names[0])
        })
      }
      const kept = new Map<Client, { readonly at: Workplace; readonly names: Names; readonly chain: string }>()
      for (const client of asking) {
        await tell(client, "issues below the CA that will be compromised", async () => {
          const names = hostOf(client, "kept")
          // mod_md listens at a port of its own.
          const at = { ...workplace(site, client), alpnPort: await freePort() }
          await client.issue(at, names)
          const chain = client.chain(at, names, names[0])
          await judge(site, chain, "one", "ca", names[0])
          kept.set(client, { at, names, chain })
        })
      }
      const from = Date.now() + waitMillis
      const rotate = ["ca", "rotate", "--to", "next.pem", "--cross", "next-by-one.pem", "--write"]
      say(await run(directory, ...rotate, "--at", new Date(from).toISOString()))
      server.signal("SIGHUP")
      await server.waitForEvent("server_config_reloaded")
      // The list of the next CA is there before its first certificate.
      await fetchList(server, issuerIdOf(join(directory, "next.pem")))
      await delay(from + 1000 - Date.now())
      for (const client of clients) {
        await tell(client, "renews after the rotation", async () => {
          const names = hostOf(client, "across")
          const at = workplace(site, client)
          const before = client.chain(at, names, names[0])
          await client.renew(at, names)
          await judge(site, client.chain(at, names, names[0]), "two", "next", names[0])
          await judge(site, before, "one", "ca", names[0])
        })
        await tell(client, "chooses the chain of the old root", async () => {
          const names = hostOf(client, "chosen")
          const at = workplace(site, client, "Root One")
          await client.issue(at, names)
          await judge(site, client.chain(at, names, names[0]), "one", "next", names[0])
        })
      }
      const id = issuerIdOf(join(directory, "ca.pem"))
      say(await run(directory, "ca", "compromise", id, "--yes"))
      for (const client of asking) {
        const one = kept.get(client)
        if (one === undefined) continue
        const { at, chain, names } = one
        await tell(client, "renews what a compromised CA has signed", async () => {
          await listed(site, chain, names[0])
          await client.renewWhenTold?.(at, names)
          await judge(site, client.chain(at, names, names[0]), "two", "next", names[0])
        })
      }
      const [shown] = (JSON.parse(await run(directory, "crl", "list", "--json")) as Shown).items
        .filter(({ issuer }) => issuer === id)
      equal([shown?.issuance, shown?.unlisted], ["compromised", 0], "the CA in crl list")
    } finally {
      await server.dispose()
    }
  } finally {
    for (const folder of [home, directory]) rmSync(folder, { recursive: true, force: true })
  }
  return outcomes
}

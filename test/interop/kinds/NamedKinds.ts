import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { AcmeSession } from "../../support/AcmeSession.ts"
import { makeCsr } from "../../support/Csr.ts"
import { certificatesOf, leafOf, verifyChain } from "../../support/Openssl.ts"
import { freePort } from "../../support/Ports.ts"
import type { Server } from "../../support/Server.ts"
import { startServer } from "../../support/Server.ts"
import type { Names, Workplace } from "../Client.ts"
import { apache, apacheUntil } from "../clients/Apache.ts"
import { caddyOfPypi, caddyUntil } from "../clients/Caddy.ts"
import { certbot5 } from "../clients/Certbot.ts"
import { issueByLego, lacksLego, legoVersion } from "../clients/LegoLibrary.ts"
import { pythonCommands } from "../clients/PythonPackages.ts"
import type { NameServer } from "../NameServer.ts"
import { zone } from "../NameServer.ts"
import { equal, lineWith, refusalOf } from "../Saying.ts"
import type { Outcome } from "../Table.ts"
import { pebble, startPebbleOf } from "../upstreams/PebbleCa.ts"
import type { Guard, Pair, Site } from "./MutualTls.ts"
import { startNginx, startSServer } from "./MutualTls.ts"

/*
 * Tests kinds of certificates with clients and servers from other projects. Clients name a kind in their orders
 * (draft-ietf-acme-profiles), TLS servers judge the usages of the leaves, and Pebble is the upstream that offers
 * profiles.
 */

/** The programs that this play needs. */
export const kindCommands: ReadonlyArray<string> = [
  ...pythonCommands,
  ...apache.commands,
  "nginx",
  "openssl",
  ...pebble.isThere() ? [] : [pebble.installer]
]

const [serverAuth, clientAuth] = ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]
const daySeconds = 86_400

/** The number of alternate chains that Pebble offers for each certificate. */
const alternates = 2

/** The lifetimes of the profiles of Pebble, in seconds. */
const lives = { classic: 90 * daySeconds, shortlived: 6 * daySeconds }

/** Returns the lines of a configuration for a profile that relays to Pebble, with the kinds `long` and `short`. */
const relayed = (directoryUrl: string, upstream: string): string =>
  [
    "[profiles.relayed]\nchallenge.bypass = true",
    "[profiles.relayed.signer]\nbackend = \"relay\"",
    `[profiles.relayed.signer.relay]\ndirectory_url = "${directoryUrl}"`,
    "account_key_path = \"relayed.key\"\nchallenge_strategy = \"bypass\"\npoll_interval_ms = 200",
    "[profiles.relayed.certificates.kinds.default]\ndescription = \"d\"",
    "[profiles.relayed.certificates.kinds.long]\ndescription = \"long\"\nupstream = \"classic\"",
    `[profiles.relayed.certificates.kinds.short]\ndescription = "short"\nupstream = "${upstream}"`
  ].join("\n")

const configOf = (directoryUrl: string): string =>
  [
    "[profiles.default.certificates.kinds.default]\ndescription = \"TLS servers\"",
    "[profiles.default.certificates.kinds.mutual]\ndescription = \"servers that are clients, too\"",
    "validity = \"1d\"\nusages = [\"server_auth\", \"client_auth\"]",
    relayed(directoryUrl, "shortlived")
  ].join("\n")

interface Stage {
  readonly home: string
  readonly server: Server
  readonly nameServer: NameServer
  readonly httpPort: number
  readonly pebbleUrl: string
  /** The certificate that Pebble shows, which relays must trust. */
  readonly trusted: string
  /** Prints what a program says. */
  readonly quote: (line: string) => void
}

/** Returns the workplace of a client that names a kind. */
const workplace = ({ home, httpPort, nameServer, server }: Stage, client: string, kind: string): Workplace => {
  const at = {
    server,
    directoryUrl: server.directoryUrl,
    home: join(home, client),
    challenge: "http-01" as const,
    httpPort,
    alpnPort: httpPort,
    nameServer,
    trust: join(server.directory, "server.pem"),
    kind
  }
  mkdirSync(at.home, { recursive: true })
  return at
}

const unknown = "no-such-kind"

/** Checks a chain of the kind `mutual` for a name. */
const isMutual = async (chain: string, { server }: Stage, host: string): Promise<void> => {
  await verifyChain(chain, server.caFile, host)
  const leaf = leafOf(chain)
  equal(leaf.keyUsage, [serverAuth, clientAuth], "the usages")
  const seconds = (leaf.validToDate.getTime() - leaf.validFromDate.getTime()) / 1000
  equal(seconds, daySeconds + 3600, "the lifetime, which begins an hour before")
}

const hostOf = (client: string): Names => [`kinds-${client}.${zone}`]

const byCertbot = async (stage: Stage): Promise<void> => {
  const names = hostOf("certbot")
  const at = workplace(stage, "certbot", "mutual")
  await certbot5.issue(at, names)
  await isMutual(certbot5.chain(at, names, names[0]), stage, names[0])
  const said = await refusalOf(certbot5.issue(workplace(stage, "certbot-unknown", unknown), hostOf("unknown")))
  stage.quote(lineWith(said, `The certificate profile ${unknown} is not offered; default, mutual are.`))
}

const byLego = async (stage: Stage): Promise<void> => {
  const names = hostOf("lego")
  await isMutual(await issueByLego(workplace(stage, "lego", "mutual"), names), stage, names[0])
  const said = await refusalOf(issueByLego(workplace(stage, "lego-unknown", unknown), hostOf("unknown")))
  stage.quote(lineWith(said, "urn:ietf:params:acme:error:invalidProfile"))
  lineWith(said, "default, mutual")
}

const byCaddy = async (stage: Stage): Promise<void> => {
  const names = hostOf("caddy")
  const at = workplace(stage, "caddy", "mutual")
  await caddyOfPypi.issue(at, names)
  await isMutual(caddyOfPypi.chain(at, names, names[0]), stage, names[0])
  // Caddy compares the name with the directory before it orders.
  const refusal = `unknown profile name '${unknown}'; supported profiles: map\\[default:TLS servers mutual:`
  await caddyUntil(workplace(stage, "caddy-unknown", unknown), hostOf("unknown")[0], refusal)
}

const byApache = async (stage: Stage): Promise<void> => {
  const names = hostOf("apache")
  const at = { ...workplace(stage, "apache", "mutual"), alpnPort: await freePort() }
  await apache.issue(at, names)
  await isMutual(apache.chain(at, names, names[0]), stage, names[0])
  const other = { ...workplace(stage, "apache-unknown", unknown), alpnPort: await freePort() }
  await apacheUntil(other, hostOf("unknown"), new RegExp(`mandatory ACME profile .${unknown}. is not offered by CA`))
}

/** Returns the files that certbot keeps for a name. */
const pairOf = (at: Workplace, [name]: Names): Pair => {
  const folder = join(at.home, "config/live", name)
  return { certificate: join(folder, "fullchain.pem"), key: join(folder, "privkey.pem") }
}

/** Lets both servers judge a leaf of the kind `default` and one of the kind `mutual`, which certbot has ordered. */
const mutualTls = async (
  stage: Stage,
  start: (site: Site) => Promise<Guard>,
  judge: (guard: Guard, plain: Pair, mutual: Pair) => Promise<void>
): Promise<void> => {
  const names = hostOf("plain")
  const at = workplace(stage, "certbot-plain", "default")
  const plain = pairOf(at, names)
  await certbot5.issue(at, names)
  equal(leafOf(readFileSync(plain.certificate, "utf8")).keyUsage, [serverAuth], "the usages")
  const mutual = pairOf(workplace(stage, "certbot", "mutual"), hostOf("certbot"))
  const directory = mkdtempSync(join(stage.home, "mutual-"))
  const guard = await start({ directory, host: names[0], own: plain, caFile: stage.server.caFile })
  try {
    await judge(guard, plain, mutual)
  } finally {
    await guard.stop()
  }
}

const byNginx = (stage: Stage): Promise<void> =>
  mutualTls(stage, startNginx, async ({ says, visit }, plain, mutual) => {
    const refused = await visit(plain)
    stage.quote(lineWith(refused, "HTTP/1.1 400 Bad Request"))
    stage.quote(lineWith(refused, "The SSL certificate error"))
    await says(/client SSL certificate verify error: \(26:unsuitable certificate purpose\)/)
    const accepted = await visit(mutual)
    stage.quote(lineWith(accepted, "HTTP/1.1 200 OK"))
    stage.quote(lineWith(accepted, "client SUCCESS"))
  })

const bySServer = (stage: Stage): Promise<void> =>
  mutualTls(stage, startSServer, async ({ says, visit }, plain, mutual) => {
    stage.quote(lineWith(await visit(plain), "alert unsupported certificate"))
    await says(/verify error:num=26:unsuitable certificate purpose/)
    stage.quote(lineWith(await visit(mutual), "HTTP/1.0 200 ok"))
  })

/**
 * Orders certificates through the relay, and compares their lifetimes with those of Pebble's profiles. Every order
 * names a profile, because otherwise Pebble chooses one at random.
 */
const byPebble = async ({ quote, server }: Stage): Promise<void> => {
  const session = await AcmeSession.open(server.profileUrl("relayed"))
  try {
    await session.register()
    equal(session.directory.meta?.["profiles"], { default: "d", long: "long", short: "short" }, "the profiles")
    for (const [index, kind] of (["short", "long", "short", "long"] as const).entries()) {
      const names = [`${kind}${index}.relayed.${zone}`]
      const { chain, order } = await session.issue(names, new Map(), { more: { profile: kind } })
      const { profile } = order.body as { readonly profile?: string }
      equal(profile, kind, "the profile of the order")
      const leaf = leafOf(chain)
      // Both ends belong to the validity (RFC 5280 section 4.1.2.5), so Pebble's leaf ends a second earlier.
      const seconds = (leaf.validToDate.getTime() - leaf.validFromDate.getTime()) / 1000 + 1
      equal(seconds, lives[kind === "short" ? "shortlived" : "classic"], `the lifetime of ${kind}`)
      quote(`${kind}: ${leaf.validFrom} to ${leaf.validTo}`)
    }
  } finally {
    session.close()
  }
}

/** Orders a certificate through the relay, and follows its links to the chains through Pebble's other roots. */
const chainsOfPebble = async ({ quote, server }: Stage): Promise<void> => {
  const session = await AcmeSession.open(server.profileUrl("relayed"))
  try {
    await session.register()
    const { certificateUrl, chain } = await session.issue([`chains.relayed.${zone}`], new Map(), {
      more: { profile: "long" }
    })
    const { headers } = await session.post(certificateUrl)
    const urls = [...[headers["link"] ?? ""].flat().join().matchAll(/<([^<>]*)>;rel="alternate"/g)].map((
      [, url = ""]
    ) => url)
    equal(urls, [1, 2].map((at) => `${certificateUrl}/${at}`), "the alternate chains")
    const chains = [chain]
    for (const url of urls) chains.push((await session.post(url)).text)
    equal(chains.map((one) => leafOf(one).fingerprint256), chains.map(() => leafOf(chain).fingerprint256), "the leaf")
    const tops = chains.map((one) => certificatesOf(one).at(-1)?.issuer ?? "")
    equal(new Set(tops).size, alternates + 1, `the roots ${tops.join(", ")}`)
    quote(tops.join(", "))
  } finally {
    session.close()
  }
}

/**
 * Starts the service with a kind whose profile Pebble does not offer. The log says so, the other kind can be issued, and
 * an order of this kind ends.
 */
const unofferedByPebble = async ({ pebbleUrl, quote, trusted }: Stage): Promise<void> => {
  const server = await startServer({ config: relayed(pebbleUrl, "longlived"), env: { NODE_EXTRA_CA_CERTS: trusted } })
  try {
    const { fields } = await server.waitForEvent("profile_kind_unoffered")
    const refusal =
      "certificates.kinds.short.upstream: the upstream offers no profile longlived, but classic, shortlived."
    equal(fields["error"], refusal, "the log")
    const session = await AcmeSession.open(server.profileUrl("relayed"))
    await session.register()
    await session.issue([`other.relayed.${zone}`], new Map(), { more: { profile: "long" } })
    const names = [`unoffered.relayed.${zone}`]
    const { body, url } = await session.newOrder(names, { profile: "short" })
    await session.authorize(body, new Map())
    await session.finalize(body, makeCsr({ names }).csr)
    const { error, status } = await session.awaitOrder(url, ["valid", "invalid"])
    equal(status, "invalid", "the order")
    quote(`${refusal} An order of it ends: ${JSON.stringify(error)}`)
    session.close()
  } finally {
    await server.dispose()
  }
}

interface Part {
  readonly client: string
  readonly scenario: string
  readonly play: (stage: Stage) => Promise<void>
}

const parts: ReadonlyArray<Part> = [
  { client: `certbot of PyPI ${certbot5.pinned?.version}`, scenario: "a kind by its name", play: byCertbot },
  { client: `Caddy of PyPI ${caddyOfPypi.pinned?.version}`, scenario: "a kind by its name", play: byCaddy },
  { client: "Apache mod_md", scenario: "a kind by its name", play: byApache },
  { client: "nginx", scenario: "clients by their usages", play: byNginx },
  { client: "openssl s_server", scenario: "clients by their usages", play: bySServer },
  { client: `relay, Pebble ${pebble.version}`, scenario: "a kind by its upstream", play: byPebble },
  { client: `relay, Pebble ${pebble.version}`, scenario: "alternate chains of its upstream", play: chainsOfPebble },
  { client: `relay, Pebble ${pebble.version}`, scenario: "a kind that it does not offer", play: unofferedByPebble }
]

const legoPart: Part = { client: `lego ${legoVersion}, the library`, scenario: "a kind by its name", play: byLego }

/** Plays one part after another, all with one service. */
export const playKinds = async (
  nameServer: NameServer,
  say: (text: string) => void
): Promise<ReadonlyArray<Outcome>> => {
  const lack = await lacksLego()
  if (lack !== undefined) say(`${legoPart.client} is left out: ${lack}`)
  if (!pebble.isThere()) await pebble.install()
  const home = mkdtempSync(join(tmpdir(), "acme-kinds-"))
  // Apache gives up the rights of root and must still find its files.
  chmodSync(home, 0o755)
  const profiles = {
    classic: { description: "for long", validityPeriod: lives.classic },
    shortlived: { description: "not for long", validityPeriod: lives.shortlived }
  }
  const upstream = await startPebbleOf(profiles, alternates)
  try {
    const trusted = join(home, "upstream.pem")
    writeFileSync(trusted, readFileSync(upstream.certificate))
    const httpPort = await freePort()
    const server = await startServer({
      config: configOf(upstream.directoryUrl),
      tls: true,
      env: {
        NODE_EXTRA_CA_CERTS: trusted,
        ACME_SVC_DNS__RESOLVER: nameServer.address,
        ACME_SVC_CHALLENGE__ENABLED: "http-01",
        ACME_SVC_CHALLENGE__HTTP_01__PORT: `${httpPort}`
      }
    })
    try {
      const outcomes: Array<Outcome> = []
      for (const { client, play, scenario } of lack === undefined ? [...parts, legoPart] : parts) {
        const quote = (line: string) => say(`${client}: ${line}`)
        const stage = { home, server, nameServer, httpPort, pebbleUrl: upstream.directoryUrl, trusted, quote }
        const begun = performance.now()
        const error = await play(stage).then(() => undefined, (cause: unknown) => String(cause))
        const outcome = { database: "SQLite", client, challenge: "", scenario, milliseconds: performance.now() - begun }
        outcomes.push(error === undefined ? outcome : { ...outcome, error })
        if (error !== undefined) say(`--- ${client}, ${scenario}\n${error}\n---`)
      }
      return outcomes
    } finally {
      await server.dispose()
    }
  } finally {
    await upstream.stop()
    rmSync(home, { recursive: true, force: true })
  }
}

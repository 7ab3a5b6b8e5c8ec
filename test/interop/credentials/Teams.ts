import type { X509Certificate } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Browser } from "playwright-core"
import { startBrowser } from "../../support/Browser.ts"
import { leafOf, verifyChain } from "../../support/Openssl.ts"
import { freePort } from "../../support/Ports.ts"
import type { Server } from "../../support/Server.ts"
import { startServer } from "../../support/Server.ts"
import type { Challenge, Client, Credential, Names, Workplace } from "../Client.ts"
import { certbot5 } from "../clients/Certbot.ts"
import { lego } from "../clients/Lego.ts"
import { pythonCommands } from "../clients/PythonPackages.ts"
import { once } from "../Kept.ts"
import type { NameServer } from "../NameServer.ts"
import { zone } from "../NameServer.ts"
import { equal, lineWith, refusalOf } from "../Saying.ts"
import type { Outcome } from "../Table.ts"
import type { Texts } from "./Pasting.ts"
import { copyTexts, countPasted, pasteCaddy, pasteCertbot, pasteLego } from "./Pasting.ts"
import type { OperatorSurface, OperatorSurfaces, Scope } from "./Surfaces.ts"
import { adminConfig, openSurfaces } from "./Surfaces.ts"

/*
 * Two teams with a credential each (docs/configure/credentials.md). The shop may order names below its own domain, and
 * the mail team may order one name with certificates for servers that are clients too. certbot and lego show what each
 * team gets, and print with which words it is refused everything else. Debian's certbot is too old to print a refusal
 * (docs/contribute/decisions/clients.md, "The detail tells the whole problem").
 */

/** The programs that this play needs. */
export const credentialCommands: ReadonlyArray<string> = ["certbot", "lego", "caddy", ...pythonCommands]

const [serverAuth, clientAuth] = ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]

const kinds = [
  "[profiles.default.certificates.kinds.default]\ndescription = \"servers\"",
  "[profiles.default.certificates.kinds.mutual]\ndescription = \"servers that are clients, too\"",
  "validity = \"1d\"\nusages = [\"server_auth\", \"client_auth\"]"
].join("\n")

/** A team: its credential and the name that it orders. */
interface Team extends Credential {
  readonly host: string
}

/** Everything that the plays on one database share. */
export interface Stage {
  /** The database in names of hosts. */
  readonly slug: string
  readonly home: string
  readonly server: Server
  readonly nameServer: NameServer
  readonly httpPort: number
  /** The certificate that clients must trust. */
  readonly trust: string
  readonly surfaces: OperatorSurfaces
  readonly shop: Team
  readonly mail: Team
  /** The texts that were copied from the panel. */
  readonly texts: () => Promise<Texts>
  /** Prints what a client says. */
  readonly quote: (client: string, line: string) => void
}

/** Returns the workplace of a client of a team. Each `place` is another machine. */
const workplace = (
  { home, httpPort, nameServer, server, trust }: Stage,
  team: Team,
  place: string,
  challenge: Challenge = "http-01"
): Workplace => {
  const at = {
    server,
    directoryUrl: server.directoryUrl,
    home: join(home, place),
    challenge,
    httpPort,
    alpnPort: httpPort,
    nameServer,
    trust,
    credential: team
  }
  mkdirSync(at.home, { recursive: true })
  return at
}

/** Orders a certificate, verifies the chain, and returns the leaf. */
const issued = async (client: Client, at: Workplace, ...names: Names): Promise<X509Certificate> => {
  await client.issue(at, names)
  const chain = client.chain(at, names, names[0])
  for (const name of names) await verifyChain(chain, at.server.caFile, name)
  return leafOf(chain)
}

/** What certbot has written into its log, where it keeps the types of problems. */
const logOf = ({ home }: Workplace): string => {
  const file = join(home, "logs/letsencrypt.log")
  return existsSync(file) ? readFileSync(file, "utf8") : ""
}

/** Lets a client order in vain. What it says must have the type and the detail of the problem. */
const refused = async (
  { quote }: Stage,
  client: Client,
  at: Workplace,
  names: Names,
  { detail, type }: { readonly type: string; readonly detail: string }
): Promise<void> => {
  const said = (await refusalOf(client.issue(at, names))).split("ended with ").slice(1).join("")
  lineWith(said + logOf(at), `urn:ietf:params:acme:error:${type}`)
  quote(client.name, lineWith(said, detail))
}

const uncovered = { type: "rejectedIdentifier", detail: "The credential of this account does not cover it." }

const certbotIssues = async (stage: Stage): Promise<void> => {
  const leaf = await issued(certbot5, workplace(stage, stage.shop, "certbot"), stage.shop.host)
  equal(leaf.keyUsage, [serverAuth], "the usages")
}

const legoIssues = async (stage: Stage): Promise<void> => {
  const leaf = await issued(lego, workplace(stage, stage.mail, "lego"), stage.mail.host)
  equal(leaf.keyUsage, [serverAuth, clientAuth], "the usages of the only kind that this team may order")
}

const certbotAsksForOthers = (stage: Stage): Promise<void> => {
  const { mail, shop } = stage
  return refused(stage, certbot5, workplace(stage, shop, "certbot"), [`other.${shop.host}`, mail.host], uncovered)
}

const legoAsksForOthers = (stage: Stage): Promise<void> =>
  refused(stage, lego, workplace(stage, stage.mail, "lego"), [stage.shop.host], uncovered)

const certbotAsksForWildcard = (stage: Stage): Promise<void> =>
  refused(stage, certbot5, workplace(stage, stage.shop, "certbot", "dns-01"), [`*.sub.${stage.shop.host}`], uncovered)

const certbotAsksForKind = async (stage: Stage): Promise<void> => {
  const at = { ...workplace(stage, stage.shop, "certbot"), kind: "mutual" }
  const detail = "The certificate profile mutual is not offered; default is."
  await refused(stage, certbot5, at, [`mutual.${stage.shop.host}`], { type: "invalidProfile", detail })
}

const legoOpensAccounts = (stage: Stage): Promise<void> =>
  refused(stage, lego, workplace(stage, stage.mail, "lego-again"), [stage.mail.host], {
    type: "unauthorized",
    detail: "The external account binding does not match an accepted credential."
  })

/** Sets a limit in the panel. It holds for the next order of the account that certbot has opened before. */
const panelLimits = async (stage: Stage): Promise<void> => {
  const { surfaces: { panel }, shop } = stage
  await panel.change(shop.kid, { ordersPerDay: 1 })
  const names: Names = [`more.${shop.host}`]
  const detail = "At most 1 new orders with this credential are allowed within 86400 s; try again at "
  await refused(stage, certbot5, workplace(stage, shop, "certbot"), names, { type: "rateLimited", detail })
  await panel.change(shop.kid, { clear: ["ordersPerDay"] })
}

/** Adds a name over the API, which certbot gets with its next order. */
const apiAdds = async (stage: Stage): Promise<void> => {
  const { surfaces: { api }, mail, shop } = stage
  await api.change(shop.kid, { names: [`**.${shop.host}`, shop.host, mail.host] })
  await issued(certbot5, workplace(stage, shop, "certbot"), mail.host)
}

/** Takes the only name of the mail team away on the command line, so that the account of lego may order no more. */
const cliRemoves = async (stage: Stage): Promise<void> => {
  const { surfaces: { cli }, mail } = stage
  await cli.change(mail.kid, { names: [`other.${mail.host}`] })
  await refused(stage, lego, workplace(stage, mail, "lego"), [mail.host], uncovered)
  await cli.change(mail.kid, { names: [mail.host] })
}

/** Revokes the credential, which leaves its accounts alone, and then deletes it, which leaves them nothing to order. */
const ends = async (stage: Stage): Promise<void> => {
  const { surfaces: { command }, mail } = stage
  const at = workplace(stage, mail, "lego")
  await command("eab", "revoke", mail.kid)
  await issued(lego, at, mail.host)
  await command("eab", "delete", mail.kid, "--yes")
  await refused(stage, lego, at, [mail.host], uncovered)
}

const scope: Scope = {
  names: ["**.same.example", "same.example"],
  kinds: ["mutual"],
  ordersPerDay: 9,
  maxAccounts: 2,
  expiresAt: "2100-01-01T00:00:00Z",
  prevalidated: true
}

/** Makes and changes the same credential through every surface, and compares what the service has stored. */
const sameSettings = async ({ surfaces }: Stage): Promise<void> => {
  for (const surface of [surfaces.api, surfaces.cli, surfaces.panel]) {
    const { hmacKey, kid } = await surface.create("same", scope)
    equal(Buffer.from(hmacKey, "base64url").length, 32, `the octets of the key by the ${surface.name}`)
    const wanted = { kid, label: "same", status: "active", accounts: 0 }
    const shown = async (what: string, wanted: object) => {
      const { createdAt: _, ...rest } = await surfaces.show(kid) as object as { readonly createdAt: string }
      const sorted = (one: object) => Object.entries(one).toSorted(([a], [b]) => a < b ? -1 : 1)
      equal(sorted(rest), sorted(wanted), `${what} by the ${surface.name}`)
    }
    await shown("made", { ...wanted, ...scope })
    await surface.change(kid, { ordersPerDay: 7, clear: ["kinds", "prevalidated"] })
    const { kinds: _kinds, prevalidated: _prevalidated, ...left } = scope
    await shown("changed", { ...wanted, ...left, ordersPerDay: 7 })
  }
}

type Fault = readonly [scope: Scope, sentence: string]

/** What no surface accepts, and the end of the sentence that every surface says. */
const faults: readonly [Fault, ...ReadonlyArray<Fault>] = [
  [{ prevalidated: true }, "needs names, because otherwise every name would be issued without a challenge."],
  [{ names: ["*.*.example"] }, "takes 1 to 100 patterns such as host.example, *.example or **.example, in lower case"],
  [{ kinds: ["two words"] }, "takes names of kinds of certificates"],
  [{ expiresAt: "tomorrow" }, "takes an RFC 3339 time, or a day as YYYY-MM-DD"],
  [{ expiresAt: "2001-01-01T00:00:00Z" }, "takes a time in the future; 2001-01-01T00:00:00Z has passed."]
]

const sameRefusals = async ({ surfaces, quote }: Stage): Promise<void> => {
  const { kid } = await surfaces.api.create("refused", {})
  const before = await surfaces.show(kid)
  for (const surface of [surfaces.api, surfaces.cli, surfaces.panel]) {
    for (const [wrong, sentence] of faults) lineWith(await refusalOf(surface.create("refused", wrong)), sentence)
    const [[wrong, sentence]] = faults
    quote(surface.name, lineWith(await refusalOf(surface.change(kid, wrong)), sentence))
  }
  equal(await surfaces.show(kid), before, "the credential")
}

interface Part {
  readonly client: string
  readonly scenario: string
  readonly play: (stage: Stage) => Promise<void>
}

const pastes = (play: (stage: Stage, texts: Texts) => Promise<void>) => async (stage: Stage) =>
  play(stage, await stage.texts())

/** The parts in their order. Each finds the accounts of those before it. */
const parts: ReadonlyArray<Part> = [
  { client: certbot5.name, scenario: "a name and the kind of its team", play: certbotIssues },
  { client: certbot5.name, scenario: "a name of another team", play: certbotAsksForOthers },
  { client: certbot5.name, scenario: "a wildcard", play: certbotAsksForWildcard },
  { client: certbot5.name, scenario: "the kind of another team", play: certbotAsksForKind },
  { client: certbot5.name, scenario: "a limit that the panel sets", play: panelLimits },
  { client: certbot5.name, scenario: "a name that the API adds", play: apiAdds },
  { client: "lego", scenario: "a name and the kind of its team", play: legoIssues },
  { client: "lego", scenario: "a name of another team", play: legoAsksForOthers },
  { client: "lego", scenario: "an account too many", play: legoOpensAccounts },
  { client: "lego", scenario: "a name that a command removes", play: cliRemoves },
  { client: "lego", scenario: "a revoked and a deleted credential", play: ends },
  { client: "API, commands, panel", scenario: "the same settings", play: sameSettings },
  { client: "API, commands, panel", scenario: "the same refusals", play: sameRefusals },
  { client: "certbot", scenario: "the line of the panel", play: pastes(pasteCertbot) },
  { client: "lego", scenario: "the line of the panel", play: pastes(pasteLego) },
  { client: "Caddy", scenario: "the lines of the panel", play: pastes(pasteCaddy) },
  { client: "panel", scenario: "the orders and accounts of a credential", play: countPasted }
]

/** Makes a team by a surface. */
const teamOf = async (surface: OperatorSurface, label: string, host: string, scope: Scope): Promise<Team> => ({
  ...await surface.create(label, scope),
  host
})

/** Plays one part after another, all with one service and one database. */
const playOn = async (
  database: string,
  databaseUrl: string | undefined,
  { browser, nameServer, say }: {
    readonly browser: Browser
    readonly nameServer: NameServer
    readonly say: (text: string) => void
  }
): Promise<ReadonlyArray<Outcome>> => {
  const [home, httpPort, adminPort] = [mkdtempSync(join(tmpdir(), "acme-teams-")), await freePort(), await freePort()]
  const server = await startServer({
    config: [adminConfig(adminPort), "[eab]\nenabled = true", kinds].join("\n"),
    tls: true,
    ...databaseUrl === undefined ? {} : { databaseUrl },
    env: {
      ACME_SVC_DNS__RESOLVER: nameServer.address,
      ACME_SVC_CHALLENGE__ENABLED: "http-01,dns-01",
      ACME_SVC_CHALLENGE__HTTP_01__PORT: `${httpPort}`
    }
  })
  try {
    const surfaces = await openSurfaces(server, databaseUrl, browser, adminPort)
    const slug = database.toLowerCase()
    const [shopHost, mailHost] = [`shop-${slug}.${zone}`, `mail-${slug}.${zone}`]
    const names = [`**.${shopHost}`, shopHost]
    const stage: Stage = {
      slug,
      home,
      server,
      nameServer,
      httpPort,
      trust: join(server.directory, "server.pem"),
      surfaces,
      shop: await teamOf(surfaces.cli, "shop", shopHost, { names, kinds: ["default"] }),
      mail: await teamOf(surfaces.api, "mail", mailHost, { names: [mailHost], kinds: ["mutual"], maxAccounts: 1 }),
      texts: once(() => copyTexts(stage)),
      quote: (client, line) => say(`${client}, ${database}: ${line}`)
    }
    const outcomes: Array<Outcome> = []
    for (const { client, play, scenario } of parts) {
      const begun = performance.now()
      const error = await play(stage).then(() => undefined, (cause: unknown) => String(cause))
      const outcome = { database, client, challenge: "", scenario, milliseconds: performance.now() - begun }
      outcomes.push(error === undefined ? outcome : { ...outcome, error })
      if (error !== undefined) say(`--- ${client}, ${scenario} on ${database}\n${error}\n---`)
    }
    await surfaces.window.close()
    return outcomes
  } finally {
    await server.dispose()
    rmSync(home, { recursive: true, force: true })
  }
}

/** Plays both teams on SQLite and on PostgreSQL, at the same time. */
export const playCredentials = async (
  nameServer: NameServer,
  createDatabase: () => Promise<string>,
  say: (text: string) => void
): Promise<ReadonlyArray<Outcome>> => {
  const browser = await startBrowser()
  try {
    const common = { browser, nameServer, say }
    const played = await Promise.all([
      playOn("SQLite", undefined, common),
      playOn("PostgreSQL", await createDatabase(), common)
    ])
    return played.flat()
  } finally {
    await browser.close()
  }
}

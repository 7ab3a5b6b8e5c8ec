import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { relayWhileKilled } from "../support/KilledRelays.ts"
import { leafOf, verifyChain } from "../support/Openssl.ts"
import { freePort } from "../support/Ports.ts"
import type { Server } from "../support/Server.ts"
import { startServer } from "../support/Server.ts"
import type { Challenge, Names, Workplace } from "./Client.ts"
import { certbot } from "./clients/Certbot.ts"
import type { NameServer } from "./NameServer.ts"
import { zone } from "./NameServer.ts"
import type { Pebble } from "./Pebble.ts"
import { startPebble } from "./Pebble.ts"
import type { Outcome } from "./Table.ts"

/*
 * certbot uses this service, which relays to Pebble with each strategy, and also while the service is killed again and
 * again.
 */

/** The programs that these relays need. */
export const relayCommands: ReadonlyArray<string> = ["certbot", "pebble"]

const client = "certbot, relay, Pebble"

/** The number of orders in progress during a kill, and the number of orders between two kills. */
const [orders, between] = [24, 3]

/** A strategy, and how certbot proves its names to this service. */
const strategies: ReadonlyArray<{ readonly strategy: string; readonly challenge: Challenge }> = [
  { strategy: "bypass", challenge: "http-01" },
  { strategy: "http01", challenge: "http-01" },
  { strategy: "dns01", challenge: "dns-01" }
]

interface Stage {
  readonly database: string
  readonly databaseUrl: string
  readonly server: Server
  readonly home: string
  readonly httpPort: number
  readonly nameServer: NameServer
  /** The Pebble that accepts every proof of this service without a check. */
  readonly believing: Pebble
  /** The Pebble that validates. */
  readonly looking: Pebble
}

const profileOf = (name: string, upstream: Pebble, strategy: string, more: ReadonlyArray<string> = []): string =>
  [
    `[profiles.${name}.signer]`,
    "backend = \"relay\"",
    `[profiles.${name}.signer.relay]`,
    `directory_url = "${upstream.directoryUrl}"`,
    `account_key_path = "${strategy}.key"`,
    "poll_interval_ms = 200",
    `challenge_strategy = "${strategy}"`,
    ...more
  ].join("\n")

const configOf = (believing: Pebble, looking: Pebble, nameServer: NameServer, keyIndex: number): string => {
  const { algorithm, name, secret } = nameServer.tsigKeys[keyIndex] ?? { algorithm: "", name: "", secret: "" }
  const dns01 = (profile: string) => [
    `[profiles.${profile}.signer.relay.dns01.rfc2136]`,
    `server = "${nameServer.address}"`,
    `zone = "${zone}."`,
    `tsig_key_name = "${name}."`,
    `tsig_key_secret = "${secret}"`,
    `tsig_algorithm = "${algorithm}"`
  ]
  return [
    // Each kill uses up an attempt of each order in progress.
    "[jobs]\nmax_attempts = 50",
    profileOf("bypass", believing, "bypass"),
    profileOf("http01", looking, "http01"),
    profileOf("dns01", looking, "dns01", dns01("dns01")),
    // This signer is the same as that of another profile, so that both share one account at the upstream.
    "[profiles.killed.challenge]\nbypass = true",
    profileOf("killed", looking, "dns01", dns01("killed"))
  ].join("\n")
}

/** Plays scenarios one after another. After the first failure, no other is tried. */
const playAll = async (
  { database }: Stage,
  challenge: string,
  scenarios: { readonly [scenario: string]: () => Promise<void> }
): Promise<ReadonlyArray<Outcome>> => {
  const outcomes: Array<Outcome> = []
  let failed = false
  for (const [scenario, play] of Object.entries(scenarios)) {
    const begun = performance.now()
    const error: string | undefined = failed
      ? "not reached"
      : await play().then(() => undefined, (cause: unknown) => String(cause))
    const outcome = { database, client, challenge, scenario, milliseconds: performance.now() - begun }
    outcomes.push(error === undefined ? outcome : { ...outcome, error })
    failed ||= error !== undefined
  }
  return outcomes
}

const byStrategy = async (
  stage: Stage,
  { challenge, strategy }: (typeof strategies)[number]
): Promise<ReadonlyArray<Outcome>> => {
  const { believing, looking, server } = stage
  const upstream = strategy === "bypass" ? believing : looking
  const at: Workplace = {
    server,
    directoryUrl: server.profileUrl(strategy),
    home: join(stage.home, strategy),
    challenge,
    httpPort: stage.httpPort,
    alpnPort: stage.httpPort,
    nameServer: stage.nameServer,
    trust: join(server.directory, "server.pem")
  }
  mkdirSync(at.home)
  const host = `${strategy}-${stage.database.toLowerCase()}.relayed.${zone}`
  const issue = async (...names: Names) => {
    await certbot.issue(at, names)
    const chain = certbot.chain(at, names, names[0])
    for (const name of names) await verifyChain(chain, upstream.rootFile, name.replace("*", "below"))
  }
  return playAll(stage, strategy, {
    issue: () => issue(host, `www.${host}`),
    ...challenge === "dns-01" ? { wildcard: () => issue(`wild.${host}`, `*.wild.${host}`) } : {},
    "revoke upstream": async () => {
      const serial = leafOf(certbot.chain(at, [host], host)).serialNumber.toLowerCase()
      const before = await upstream.stateOf(serial)
      await certbot.revoke?.(at, [host])
      const states = `${before}, ${await upstream.stateOf(serial)}`
      if (states !== "Valid, Revoked") throw new Error(`the upstream says ${states}`)
    }
  })
}

/** Returns a different host for each database, because both databases are tried at the same time with one DNS zone. */
const killedHost = (database: string): string => `killed-${database.toLowerCase()}.${zone}`

/**
 * Relays orders while the service is killed, and checks that each is one order at the upstream and ends with a
 * certificate.
 */
const killedAtRandom = async ({ database, databaseUrl, looking, server }: Stage): Promise<void> => {
  const before = looking.orders()
  const nameOf = (index: number) => `k${index}.${killedHost(database)}`
  await relayWhileKilled({ server, databaseUrl, profile: "killed", nameOf, orders, between, withinMillis: 400 })
  const opened = looking.orders() - before
  if (opened !== orders) throw new Error(`${opened} orders at the upstream for ${orders} here`)
}

/** Checks that the zone contains none of the records that were published to prove names. */
const nothingLeft = async ({ database, nameServer }: Stage): Promise<void> => {
  const left = (await nameServer.transfer()).filter((line) =>
    line.startsWith("_acme-challenge.k") && line.includes(`.${killedHost(database)}.`) && line.includes(" TXT ")
  )
  if (left.length > 0) throw new Error(`left in the zone:\n${left.join("\n")}`)
}

const onDatabase = async (
  database: string,
  url: string | undefined,
  nameServer: NameServer,
  keyIndex: number
): Promise<ReadonlyArray<Outcome>> => {
  const home = mkdtempSync(join(tmpdir(), "acme-relays-"))
  const [port, httpPort] = [await freePort(), await freePort()]
  // Pebble validates http-01 at the address of this service, as if there were a forwarder.
  const upstream = { nameServer: nameServer.address, httpPort: port }
  const believing = await startPebble({ ...upstream, believes: true })
  const looking = await startPebble({ ...upstream, believes: false })
  try {
    const trusted = join(home, "upstreams.pem")
    writeFileSync(trusted, `${believing.shown}\n${looking.shown}`)
    const databaseUrl = url ?? `sqlite://${join(home, "relays.db")}`
    const server = await startServer({
      config: configOf(believing, looking, nameServer, keyIndex),
      port,
      databaseUrl,
      env: {
        NODE_EXTRA_CA_CERTS: trusted,
        ACME_SVC_DNS__RESOLVER: nameServer.address,
        ACME_SVC_CHALLENGE__ENABLED: "http-01,dns-01",
        ACME_SVC_CHALLENGE__HTTP_01__PORT: `${httpPort}`
      }
    })
    const stage: Stage = { database, databaseUrl, server, home, httpPort, nameServer, believing, looking }
    try {
      const outcomes: Array<Outcome> = []
      for (const one of strategies) outcomes.push(...await byStrategy(stage, one))
      const killed = await playAll(stage, "dns01", {
        [`killed ${orders / between} times`]: () => killedAtRandom(stage),
        "nothing left in the zone": () => nothingLeft(stage)
      })
      return [...outcomes, ...killed]
    } finally {
      await server.dispose()
    }
  } finally {
    await believing.stop()
    await looking.stop()
    rmSync(home, { recursive: true, force: true })
  }
}

/** Plays everything on both databases, each with a TSIG key of a different algorithm. */
export const playRelays = async (
  nameServer: NameServer,
  freshPostgres: () => Promise<string>,
  say: (text: string) => void
): Promise<ReadonlyArray<Outcome>> => {
  const played = (database: string, url: string | undefined, keyIndex: number): Promise<ReadonlyArray<Outcome>> =>
    onDatabase(database, url, nameServer, keyIndex).catch((cause: unknown) => [
      { database, client, challenge: "", scenario: "start", milliseconds: 0, error: String(cause) }
    ])
  const url = await freshPostgres()
  const outcomes = (await Promise.all([played("SQLite", undefined, 0), played("PostgreSQL", url, 2)])).flat()
  for (const { challenge, database, error, scenario } of outcomes) {
    if (error !== undefined) say(`--- ${client} ${challenge} ${scenario} on ${database}\n${error}`)
  }
  return outcomes
}

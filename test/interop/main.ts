import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inParallel } from "../support/InParallel.ts"
import { freePort } from "../support/Ports.ts"
import { startPostgres } from "../support/Postgres.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, runToEnd, startServer } from "../support/Server.ts"
import { bindAccounts } from "./Bound.ts"
import { ceremonyCommands, playCeremony } from "./ceremony/Ceremony.ts"
import type { Client, Workplace } from "./Client.ts"
import { clients } from "./Clients.ts"
import type { CertbotCheckout } from "./clients/CertbotCheckout.ts"
import { certbotAt } from "./clients/CertbotCheckout.ts"
import { pythonCommands } from "./clients/PythonPackages.ts"
import { uacme } from "./clients/Uacme.ts"
import { endWith, tellOutcomes } from "./Closing.ts"
import { canTrust } from "./Command.ts"
import { credentialCommands, playCredentials } from "./credentials/Teams.ts"
import { forwarderCommands, playForwarders } from "./Forwarders.ts"
import { frontCommands, playFronts } from "./Fronts.ts"
import { guideCommands, playGuides } from "./guides/Guides.ts"
import { otherVersions } from "./guides/Tried.ts"
import { kindCommands, playKinds } from "./kinds/NamedKinds.ts"
import { mailCommands, playMail } from "./mail/Mail.ts"
import { playMlDsa } from "./mldsa/MlDsa.ts"
import type { NameServer } from "./NameServer.ts"
import { startNameServer, zone } from "./NameServer.ts"
import { playOpenApi } from "./OpenApi.ts"
import type { Options } from "./Options.ts"
import { readOptions } from "./Options.ts"
import { install, versionsOf } from "./Packages.ts"
import { playProxies, proxyCommands } from "./Proxies.ts"
import { playRelays, relayCommands } from "./Relays.ts"
import { playRotation, rotationCommands } from "./rotation/Rotation.ts"
import type { Scenario, Stage } from "./Scenarios.ts"
import { boundProfile, provedProfile, scenarios } from "./Scenarios.ts"
import type { Outcome } from "./Table.ts"
import { playTrail, trailCommands } from "./trail/Trail.ts"
import { playTransit, transitCommands } from "./transit/TransitKeys.ts"
import { playUnits, unitCommands } from "./Units.ts"
import { playUpstreams, upstreamCommands } from "./upstreams/Faulted.ts"
import { playZoneUpdates } from "./ZoneUpdates.ts"

/*
 * `npm run interop` plays every scenario that clients in Debian's versions support, with the built server, on SQLite
 * and on PostgreSQL. BIND answers queries for names. It also plays the recipes for forwarders, the reverse proxies,
 * mail to Exim, the units for systemd and the guides, compares the API of operators with its document, lets another
 * library judge keys of ML-DSA, lets clients and servers of others judge kinds of certificates, gives two teams a
 * credential each, lets clients renew while a CA is replaced, lets OpenSSL, GnuTLS and Java judge a CA that two machines
 * made, signs with a key in a server of OpenBao, and pushes the audit trail to rsyslog. Everything happens on loopback.
 * Arguments select by a part of the name. `--help` explains the rest.
 */

const databases = ["SQLite", "PostgreSQL"] as const

/** The variables with which, on the first database, answers wait for the result and for the certificate. */
const waits = { ACME_SVC_CHALLENGE__ANSWER_WAIT_MS: "5000", ACME_SVC_ORDER__FINALIZE_WAIT_MS: "5000" }

const hasWaits = (database: string): boolean => database === databases[0]

/** How many clients run at a time, each with all its challenges, since they mostly wait. */
const width = 3

const say = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

const tell = (title: string, error: string, server: Server): void => {
  say(`--- ${title}\n${error}\n--- the server's last records`)
  for (const record of server.records().slice(-15)) say(JSON.stringify(record))
  say(`${server.stderr().slice(-2000)}\n---`)
}

/**
 * Plays the scenarios of a stage one after another. After a failure, no other is tried, because later scenarios depend
 * on earlier ones.
 */
const playAll = async (
  stage: Stage,
  database: string,
  plays: ReadonlyArray<Scenario>
): Promise<ReadonlyArray<Outcome>> => {
  const outcomes: Array<Outcome> = []
  const { at: { challenge, server }, client: { name: client } } = stage
  for (const { name: scenario, play } of plays) {
    const begun = performance.now()
    const reached = outcomes[0]?.error === undefined
    const error: string | undefined = reached
      ? await play(stage).then(() => undefined, (cause: unknown) => String(cause))
      : "not reached"
    const outcome = { database, client, challenge, scenario, milliseconds: performance.now() - begun }
    outcomes.push(error === undefined ? outcome : { ...outcome, error })
    if (reached && error !== undefined) tell(`${client} ${challenge} ${scenario} on ${database}`, error, server)
  }
  return outcomes
}

/** Plays one client with a server and a database of its own. Each challenge has a home and an account of its own. */
const drive = async (
  client: Client,
  database: string,
  url: string | undefined,
  nameServer: NameServer,
  tls: boolean
): Promise<ReadonlyArray<Outcome>> => {
  const slug = client.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")
  const home = mkdtempSync(join(tmpdir(), `acme-${slug}-`))
  // Some clients give up the rights of root and must still find their files.
  chmodSync(home, 0o755)
  const [httpPort, alpnPort] = [await freePort(), await freePort()]
  try {
    const server = await startServer({
      config: [
        minimalConfig,
        `[profiles.${boundProfile}.eab]\nenabled = true`,
        `[profiles.${provedProfile}.eab]\nenabled = ${client.binds === true}`
      ].join("\n"),
      tls,
      ...url === undefined ? {} : { databaseUrl: url },
      env: {
        ACME_SVC_DNS__RESOLVER: nameServer.address,
        ACME_SVC_CHALLENGE__ENABLED: "http-01,dns-01,tls-alpn-01",
        ACME_SVC_CHALLENGE__HTTP_01__PORT: `${httpPort}`,
        ACME_SVC_CHALLENGE__TLS_ALPN_01__PORT: `${alpnPort}`,
        ...hasWaits(database) ? waits : {}
      }
    })
    const command = async (...words: ReadonlyArray<string>) => {
      const env = url === undefined ? {} : { ACME_SVC_DATABASE__URL: url }
      const { code, stderr, stdout } = await runToEnd(words, { config: null, directory: server.directory, env })
      if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}: ${stderr}`)
      return stdout
    }
    const bindAll = (profile: string, kid: string) =>
      bindAccounts(url ?? join(server.directory, "sqlite.db"), profile, kid)
    try {
      const outcomes = await Promise.all(client.challenges.map(async (challenge) => {
        const at: Workplace = {
          server,
          directoryUrl: server.directoryUrl,
          home: join(home, challenge),
          challenge,
          // Challenges are answered at the same time, and the service knows only these two ports.
          httpPort: challenge === "http-01" ? httpPort : await freePort(),
          alpnPort: challenge === "tls-alpn-01" ? alpnPort : await freePort(),
          nameServer,
          trust: join(server.directory, "server.pem")
        }
        mkdirSync(at.home)
        const host = `${slug}-${challenge}-${database.toLowerCase()}.${zone}`
        const plays = scenarios.filter(({ isFor }) => isFor(client, challenge))
        return playAll({ client, at, host, command, bindAll }, database, plays)
      }))
      return outcomes.flat()
    } finally {
      await server.dispose()
    }
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** Plays everything that the arguments select. They also select from `certbots` by name. */
const play = async ({ parts }: Options, certbots: ReadonlyArray<CertbotCheckout>): Promise<boolean> => {
  const isChosen = (name: string) => parts.length === 0 || parts.some((part) => name.includes(part))
  const ready = certbots.filter(({ client: { name } }) => isChosen(name))
  const wanted = [...clients.filter(({ name }) => isChosen(name)), ...ready.map(({ client }) => client)]
  const reasons = await Promise.all(wanted.map(({ lacks }) => lacks?.()))
  const chosen = wanted.filter((_, at) => reasons[at] === undefined)
  const left = wanted.flatMap(({ name }, at) =>
    reasons[at] === undefined ? [] : [`${name} is left out: ${reasons[at]}`]
  )
  const commands = [
    ...chosen.flatMap((client) => client.commands),
    ...forwarderCommands(isChosen),
    ...proxyCommands(isChosen),
    ...frontCommands(isChosen),
    ...guideCommands(isChosen),
    ...isChosen("systemd") ? unitCommands : [],
    ...isChosen("relay") ? relayCommands : [],
    ...isChosen("upstreams") ? upstreamCommands(false) : [],
    ...isChosen("mail") ? mailCommands : [],
    ...isChosen("ml-dsa") ? pythonCommands : [],
    ...isChosen("kinds") ? kindCommands : [],
    ...isChosen("credentials") ? credentialCommands : [],
    ...isChosen("ceremony") ? ceremonyCommands : [],
    ...isChosen("rotation") ? rotationCommands : [],
    ...isChosen("transit") ? transitCommands : [],
    ...isChosen("trail") ? trailCommands : [],
    // What the tests with PKCS#11 modules need, which the gate runs after this.
    ...parts.length === 0 ? ["gcc", "softhsm2-util"] : [],
    "named",
    "nsupdate",
    "openssl"
  ]
  await install(commands, say)
  const checkouts = await Promise.all(ready.map(({ prepare }) => prepare()))
  const trusts = await canTrust()
  if (!trusts) {
    say(
      "uacme is driven over plain HTTP: it trusts the system's bundle only, and mount namespaces are not allowed here"
    )
  }
  const cluster = await startPostgres()
  try {
    const nameServer = await startNameServer()
    try {
      const runs = chosen.flatMap((client) =>
        databases.filter((database) => client.needsWaits === undefined || hasWaits(database)).map((database) => ({
          client,
          database
        }))
      )
      const plays: ReadonlyArray<() => Promise<ReadonlyArray<Outcome>>> = [
        () => playForwarders(say, isChosen),
        () => playProxies(say, isChosen),
        () => playFronts(say, isChosen),
        ...isChosen("zone updates") ? [() => playZoneUpdates(nameServer)] : [],
        ...isChosen("relay") ? [() => playRelays(nameServer, () => cluster.createDatabase(), say)] : [],
        ...isChosen("upstreams") ? [() => playUpstreams(nameServer, () => cluster.createDatabase(), say, false)] : [],
        ...isChosen("mail") ? [() => playMail(nameServer, () => cluster.createDatabase(), say)] : [],
        ...isChosen("systemd") ? [() => playUnits(say)] : [],
        ...isChosen("ml-dsa") ? [() => playMlDsa(say)] : [],
        ...isChosen("kinds") ? [() => playKinds(nameServer, say)] : [],
        ...isChosen("credentials") ? [() => playCredentials(nameServer, () => cluster.createDatabase(), say)] : [],
        ...isChosen("ceremony") ? [() => playCeremony(say)] : [],
        ...isChosen("rotation") ? [() => playRotation(nameServer, say)] : [],
        ...isChosen("transit") ? [() => playTransit(() => cluster.createDatabase(), say)] : [],
        ...isChosen("trail") ? [() => playTrail(() => cluster.createDatabase(), say)] : [],
        ...isChosen("openapi") ? [() => playOpenApi(() => cluster.createDatabase(), say)] : []
      ]
      const [driven, played, guided] = await Promise.all([
        inParallel(runs, width, async ({ client, database }) => {
          const url = database === "SQLite" ? undefined : await cluster.createDatabase()
          return drive(client, database, url, nameServer, client !== uacme || trusts)
        }),
        inParallel(plays, 1, (play) => play()),
        playGuides(say, isChosen)
      ])
      const outcomes = [...driven, ...played, guided].flat()
      const packages = await versionsOf(commands)
      const pinned = chosen.flatMap(({ pinned }) => pinned === undefined ? [] : [`${pinned.package} ${pinned.version}`])
      say(`\n${[packages, ...pinned, ...otherVersions(packages), ...checkouts, ...left].join("\n")}`)
      return tellOutcomes(outcomes, databases)
    } finally {
      await nameServer.stop()
    }
  } finally {
    await cluster.stop()
  }
}

/** Plays only the faults of upstreams. These need only the Debian packages that the programs of the upstreams need. */
const playFaults = async (parts: ReadonlyArray<string>): Promise<boolean> => {
  const isChosen = (name: string) => parts.length === 0 || parts.some((part) => name.toLowerCase().includes(part))
  await install([...upstreamCommands(true), "named", "openssl"], say)
  const cluster = await startPostgres()
  try {
    const nameServer = await startNameServer()
    try {
      const fresh = () => cluster.createDatabase()
      return tellOutcomes(await playUpstreams(nameServer, fresh, say, true, isChosen), databases)
    } finally {
      await nameServer.stop()
    }
  } finally {
    await cluster.stop()
  }
}

const main = async (words: ReadonlyArray<string>): Promise<boolean> => {
  const options = readOptions(words)
  if (options === undefined) return true
  if (options.upstreams) return playFaults(options.parts)
  const certbots = options.certbots.map(certbotAt)
  try {
    return await play(options, certbots)
  } finally {
    for (const { dispose } of certbots) dispose()
  }
}

await endWith(main(process.argv.slice(2)))

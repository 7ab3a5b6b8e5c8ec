import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inParallel } from "../../support/InParallel.ts"
import { freePort } from "../../support/Ports.ts"
import { startServer } from "../../support/Server.ts"
import type { NameServer } from "../NameServer.ts"
import { zone } from "../NameServer.ts"
import type { Outcome } from "../Table.ts"
import type { FaultProxy } from "./FaultProxy.ts"
import { startFaultProxy } from "./FaultProxy.ts"
import type { Play } from "./Faults.ts"
import { playsOf } from "./Faults.ts"
import type { Lane, Result } from "./Players.ts"
import { playAll } from "./Players.ts"
import type { Started, Upstream } from "./Upstream.ts"
import { makePair, upstreams } from "./Upstreams.ts"

/*
 * Plays every fault at every request of a relay, with real upstreams and on both databases. No order may be lost that
 * another try can save. No request may be sent sooner than the upstream allows, and none may be repeated after a final
 * refusal. A client that can correct the cause must get a problem type that says so.
 */

/** How many relays work at a time. Each has a proxy of its own, which fails only for this relay. */
const lanes = 6

const slugOf = ({ name }: Upstream): string => name.toLowerCase()

/** How many upstreams are tried at a time, since plays mostly wait. */
const width = 2

/** Returns the lines by which a relay proves names in the zone. */
const proofsOf = (index: number, { address, tsigKeys: [key] }: NameServer): ReadonlyArray<string> =>
  key === undefined ? [] : [
    `[profiles.lane${index}.signer.relay.dns01.rfc2136]`,
    `server = "${address}"`,
    `zone = "${zone}."`,
    `tsig_key_name = "${key.name}."`,
    `tsig_key_secret = "${key.secret}"`,
    `tsig_algorithm = "${key.algorithm}"`
  ]

/** A proxy, and the path of the directory behind it. */
interface Way {
  readonly proxy: FaultProxy
  readonly directory: string
}

const profileOf = (
  index: number,
  { strategy, takesReasons }: Upstream,
  { directory, proxy: { host } }: Way,
  nameServer: NameServer
): string =>
  [
    `[profiles.lane${index}.challenge]\nbypass = true`,
    `[profiles.lane${index}.signer]`,
    "backend = \"relay\"",
    `[profiles.lane${index}.signer.relay]`,
    `directory_url = "https://${host}${directory}"`,
    `account_key_path = "lane${index}.key"`,
    "poll_interval_ms = 200",
    "poll_timeout_secs = 120",
    `revocation_reasons = ${takesReasons}`,
    `challenge_strategy = "${strategy}"`,
    ...strategy === "dns01" ? proofsOf(index, nameServer) : []
  ].join("\n")

const rowOf = (upstream: Upstream, database: string, { ended, orders, play, requests, seconds, wrong }: Result) => [
  upstream.name,
  database,
  play.at,
  `${play.fault.name}, ${play.often === 1 ? "once" : play.often === 2 ? "twice" : play.often}`,
  ended,
  `${requests}`,
  `${orders}`,
  `${seconds.toFixed(1)} s`,
  wrong === undefined ? "" : `WRONG: ${wrong}`
]

const heads = ["upstream", "database", "request", "fault", "the client got", "requests", "orders", "time", ""]

const tableOf = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const all = [heads, ...rows]
  const widths = heads.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  return all.map((row) => widths.map((width, column) => (row[column] ?? "").padEnd(width)).join("  ").trimEnd()).join(
    "\n"
  )
}

/** Returns the plays of each lane. The last lane, whose proxy withholds nonces, has the plays of newNonce. */
const shared = (plays: ReadonlyArray<Play>): ReadonlyArray<ReadonlyArray<Play>> => {
  const others = plays.filter(({ at }) => at !== "newNonce")
  const parts = Array.from(
    { length: lanes - 1 },
    (_, lane) => others.filter((_, index) => index % (lanes - 1) === lane)
  )
  return [...parts, plays.filter(({ at }) => at === "newNonce")]
}

const onDatabase = async (
  upstream: Upstream,
  { directoryFor, host, port }: Started,
  nameServer: NameServer,
  database: string,
  databaseUrl: string | undefined,
  isFull: boolean
): Promise<ReadonlyArray<Result>> => {
  const home = mkdtempSync(join(tmpdir(), "acme-upstreams-"))
  const { cert, certificate, key } = makePair(home)
  const ways: Array<Way> = []
  try {
    for (let index = 0; index < lanes; index++) {
      const own = await freePort()
      const directory = await directoryFor(`127.0.0.1:${own}`)
      const withholdsNonces = index === lanes - 1
      const proxy = await startFaultProxy({
        cert,
        key,
        port: own,
        upstream: { host, port, directory },
        withholdsNonces
      })
      ways.push({ proxy, directory })
    }
    const server = await startServer({
      config: [
        "[jobs]\nretry_base_seconds = 1\nmax_concurrent = 16",
        ...ways.map((way, index) => profileOf(index, upstream, way, nameServer))
      ].join("\n"),
      port: await freePort(),
      databaseUrl: databaseUrl ?? `sqlite://${join(home, "upstreams.db")}`,
      env: { NODE_EXTRA_CA_CERTS: certificate }
    })
    try {
      const parts = shared(playsOf(isFull, upstream))
      const played = await Promise.all(parts.map((plays, index) => {
        const way = ways[index]
        if (way === undefined) return []
        const lane: Lane = { profileUrl: server.profileUrl(`lane${index}`), proxy: way.proxy }
        const below = `lane${index}.${slugOf(upstream)}-${database.toLowerCase()}.${zone}`
        return playAll(lane, plays, (play) => `f${play}.${below}`)
      }))
      return played.flat()
    } finally {
      await server.dispose()
    }
  } finally {
    await Promise.all(ways.map(({ proxy }) => proxy.stop()))
    rmSync(home, { recursive: true, force: true })
  }
}

const isPlayed = (upstream: Upstream): boolean => upstream.isOfGate || upstream.isThere()

/** Returns the commands that fetch the upstreams, of the short run or all, that are not in the kept folder. */
export const upstreamCommands = (isFull: boolean): ReadonlyArray<string> =>
  upstreams.filter((one) => !one.isThere() && (isFull || one.isOfGate)).map(({ installer }) => installer)

const playUpstream = async (
  upstream: Upstream,
  nameServer: NameServer,
  freshPostgres: () => Promise<string>,
  isFull: boolean
): Promise<ReadonlyArray<{ readonly database: string; readonly results: ReadonlyArray<Result> }>> => {
  if (!upstream.isThere()) await upstream.install()
  const started = await upstream.start(nameServer.address)
  try {
    return await Promise.all([["SQLite", undefined], ["PostgreSQL", await freshPostgres()]].map(
      async ([database = "", url]) => ({
        database,
        results: await onDatabase(upstream, started, nameServer, database, url, isFull)
      })
    ))
  } finally {
    await started.stop()
  }
}

/** Plays a few faults, or all, at every available upstream. */
export const playUpstreams = async (
  nameServer: NameServer,
  freshPostgres: () => Promise<string>,
  say: (text: string) => void,
  isFull: boolean,
  isChosen: (name: string) => boolean = () => true
): Promise<ReadonlyArray<Outcome>> => {
  const chosen = upstreams.filter((one) => isChosen(one.name) && (isFull || isPlayed(one)))
  const played = await inParallel(chosen, width, async (upstream) => ({
    upstream,
    parts: await playUpstream(upstream, nameServer, freshPostgres, isFull)
  }))
  const rows: Array<ReadonlyArray<string>> = []
  const outcomes: Array<Outcome> = []
  for (const { parts, upstream } of played) {
    for (const { database, results } of parts) {
      for (const result of results) {
        const { play, seconds, wrong } = result
        rows.push(rowOf(upstream, database, result))
        outcomes.push({
          database,
          client: `relay, ${upstream.name} ${upstream.version}`,
          challenge: play.at,
          scenario: `${play.fault.name}, ${play.often}`,
          milliseconds: seconds * 1000,
          ...wrong === undefined ? {} : { error: wrong }
        })
      }
    }
  }
  say(tableOf(rows))
  return outcomes
}

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "../../support/Ports.ts"
import { startServer } from "../../support/Server.ts"
import type { Outcome } from "../Table.ts"
import type { FaultProxy } from "./FaultProxy.ts"
import { startFaultProxy } from "./FaultProxy.ts"
import type { Play } from "./Faults.ts"
import { playsOf } from "./Faults.ts"
import type { Lane, Result } from "./Players.ts"
import { playAll } from "./Players.ts"
import type { Started, Upstream } from "./Upstreams.ts"
import { makePair, upstreams } from "./Upstreams.ts"

/*
 * Every fault at every request of a relay, at real upstreams, on both databases: no order is lost where another try can save
 * it, nothing is asked sooner than the upstream says, nothing again that was refused for good, and the client gets the type
 * that is its to mend.
 */

/** How many relays work at a time; each has a proxy of its own, which fails for it alone. */
const lanes = 6

const profileOf = (index: number, { host }: FaultProxy, directory: string): string =>
  [
    `[profiles.lane${index}.challenge]\nbypass = true`,
    `[profiles.lane${index}.signer]`,
    "backend = \"relay\"",
    `[profiles.lane${index}.signer.relay]`,
    `directory_url = "https://${host}${directory}"`,
    `account_key_path = "lane${index}.key"`,
    "poll_interval_ms = 200",
    "poll_timeout_secs = 120",
    "challenge_strategy = \"bypass\""
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

/** The plays of each lane; the last one, whose proxy withholds nonces, has those of newNonce. */
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
  { directory, host, port }: Started,
  database: string,
  databaseUrl: string | undefined,
  isFull: boolean
): Promise<ReadonlyArray<Result>> => {
  const home = mkdtempSync(join(tmpdir(), "acme-upstreams-"))
  const { cert, certificate, key } = makePair(home)
  const proxies = await Promise.all(
    Array.from(
      { length: lanes },
      (_, index) =>
        startFaultProxy({ cert, key, upstream: { host, port, directory }, withholdsNonces: index === lanes - 1 })
    )
  )
  try {
    const server = await startServer({
      config: [
        "[jobs]\nretry_base_seconds = 1\nmax_concurrent = 16",
        ...proxies.map((proxy, index) => profileOf(index, proxy, directory))
      ].join("\n"),
      port: await freePort(),
      databaseUrl: databaseUrl ?? `sqlite://${join(home, "upstreams.db")}`,
      env: { NODE_EXTRA_CA_CERTS: certificate }
    })
    try {
      const parts = shared(playsOf(isFull, upstream.revokes))
      const played = await Promise.all(parts.map((plays, index) => {
        const proxy = proxies[index]
        if (proxy === undefined) return []
        const lane: Lane = { profileUrl: server.profileUrl(`lane${index}`), proxy }
        return playAll(lane, plays, (play) => `f${play}.lane${index}.${database.toLowerCase()}.example.com`)
      }))
      return played.flat()
    } finally {
      await server.dispose()
    }
  } finally {
    await Promise.all(proxies.map((proxy) => proxy.stop()))
    rmSync(home, { recursive: true, force: true })
  }
}

/** What builds the upstreams of the gate that are not in the kept folder. */
export const upstreamCommands = (): ReadonlyArray<string> =>
  upstreams.some((one) => one.isOfGate && !one.isThere()) ? ["go"] : []

/** Plays the faults at every upstream that is there: a few of them, or all. */
export const playUpstreams = async (
  freshPostgres: () => Promise<string>,
  say: (text: string) => void,
  isFull: boolean,
  isChosen: (name: string) => boolean = () => true
): Promise<ReadonlyArray<Outcome>> => {
  const rows: Array<ReadonlyArray<string>> = []
  const outcomes: Array<Outcome> = []
  for (const upstream of upstreams.filter(({ name }) => isChosen(name))) {
    if (!upstream.isThere()) {
      if (!isFull && !upstream.isOfGate) continue
      await upstream.install()
    }
    const started = await upstream.start()
    try {
      const played = await Promise.all([["SQLite", undefined], ["PostgreSQL", await freshPostgres()]].map(
        async ([database = "", url]) => ({
          database,
          results: await onDatabase(upstream, started, database, url, isFull)
        })
      ))
      for (const { database, results } of played) {
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
    } finally {
      await started.stop()
    }
  }
  say(tableOf(rows))
  return outcomes
}

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { AcmeSession } from "../../support/AcmeSession.ts"
import { patienceMs } from "../../support/Patience.ts"
import { freePort } from "../../support/Ports.ts"
import type { Server } from "../../support/Server.ts"
import { runToEnd, startServer } from "../../support/Server.ts"
import { ofOwnCa } from "../../support/Shown.ts"
import type { Foreground } from "../Command.ts"
import { startForeground } from "../Command.ts"
import type { Outcome } from "../Table.ts"

/*
 * The audit trail on another host. A running service pushes the rows of its trail to rsyslog, which
 * writes them into a file, and every row in the file is compared with the row in the database.
 */

/** The programs and libraries that {@link playTrail} needs. */
export const trailCommands: ReadonlyArray<string> = ["rsyslogd", "rsyslog-gnutls"]

interface Files {
  readonly folder: string
  readonly port: number
  readonly log: string
}

/** The configuration of rsyslog, which requires a certificate of the client. */
const configOf = ({ folder, log, port }: Files): string =>
  `global(workDirectory="${folder}"
  defaultNetstreamDriverCAFile="${folder}/clients.pem"
  defaultNetstreamDriverCertFile="${folder}/cert.pem"
  defaultNetstreamDriverKeyFile="${folder}/key.pem")
module(load="imtcp" streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="x509/certvalid")
input(type="imtcp" address="127.0.0.1" port="${port}")
template(name="rows" type="string" string="%timestamp:::date-rfc3339%\t%app-name%\t%msgid%\t%structured-data%\n")
action(type="omfile" file="${log}" template="rows")
`

const startRsyslog = ({ folder }: Files): Promise<Foreground> =>
  startForeground("rsyslogd", ["-n", "-d", "-f", `${folder}/receiver.conf`, "-i", `${folder}/pid`], {
    ready: /initialization completed/
  })

type Row = { readonly [member: string]: unknown }

/** Returns the parameters of structured data (RFC 5424 section 6.3.3), each with all of its values. */
const parametersOf = (text: string): ReadonlyMap<string, ReadonlyArray<string>> => {
  const found = new Map<string, Array<string>>()
  for (const [, name = "", value = ""] of text.matchAll(/ ([A-Za-z]+)="((?:[^"\\\]]|\\.)*)"/g)) {
    found.set(name, [...found.get(name) ?? [], value.replaceAll(/\\(["\\\]])/g, "$1")])
  }
  return found
}

/** Returns what differs between a line of a receiver and the row of the database, or undefined. */
const differenceOf = (line: string, row: Row): string | undefined => {
  const [, , event, data = ""] = line.split("\t")
  const parameters = parametersOf(data)
  const omitted = new Set((parameters.get("omitted")?.[0] ?? "").split(" "))
  const expected = new Map<string, ReadonlyArray<string>>()
  for (const [name, value] of Object.entries(row)) {
    if (name === "createdAt") continue
    const parameter = name === "identifiers" ? "identifier" : name
    const values = Array.isArray(value) ? value : [value]
    if (!omitted.has(parameter) && values.length > 0) {
      expected.set(parameter, values.map((one) => typeof one === "string" ? one : JSON.stringify(one)))
    }
  }
  const sorted = (map: ReadonlyMap<string, unknown>) =>
    JSON.stringify([...map].filter(([name]) => name !== "omitted" && !omitted.has(name)).toSorted())
  if (event !== String(row["event"]).slice(0, 32)) return `MSGID ${event}`
  return sorted(parameters) === sorted(expected) ? undefined : `${sorted(parameters)} instead of ${sorted(expected)}`
}

const trailOf = async (server: Server, url: string | undefined): Promise<ReadonlyArray<Row>> => {
  const { code, stderr, stdout } = await runToEnd(["audit", "export", "--format", "json"], {
    config: null,
    directory: server.directory,
    env: url === undefined ? {} : { ACME_SVC_DATABASE__URL: url }
  })
  if (code !== 0) throw new Error(`audit export ended with ${code}: ${stderr}`)
  return (JSON.parse(stdout) as { readonly items: ReadonlyArray<Row> }).items
}

const linesOf = (path: string): ReadonlyArray<string> =>
  existsSync(path) ? readFileSync(path, "utf8").split("\n").filter((line) => line !== "") : []

const idIn = (line: string): number => Number(/ id="(\d+)"/.exec(line)?.[1])

/** Looks again until something is true. */
const until = async (is: () => boolean, what: string): Promise<void> => {
  for (const end = performance.now() + patienceMs; !is();) {
    if (performance.now() > end) throw new Error(`there was never ${what}`)
    await setTimeout(200)
  }
}

/** Waits until the receiver has the newest row. */
const caughtUp = async (path: string, last: () => Promise<number>): Promise<void> => {
  const wanted = await last()
  await until(() => linesOf(path).some((line) => idIn(line) === wanted), `row ${wanted} in ${path}`)
}

const play = async (url: string | undefined): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "acme-trail-"))
  const files = { folder, port: await freePort(), log: join(folder, "rows.log") }
  const [shown, client] = [ofOwnCa("localhost"), ofOwnCa("acme.example")]
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text, { mode: 0o600 })
  for (const [name, text] of Object.entries({ "cert.pem": shown.cert, "key.pem": shown.key, "ca.pem": shown.ca })) {
    write(name, text)
  }
  for (
    const [name, text] of Object.entries({ "clients.pem": client.ca, "me.pem": client.cert, "me.key": client.key })
  ) {
    write(name, text)
  }
  write("receiver.conf", configOf(files))
  let running = await startRsyslog(files)
  const server = await startServer({
    config: `[audit.syslog]
address = "localhost:${files.port}"
ca_path = "${folder}/ca.pem"
cert_path = "${folder}/me.pem"
key_path = "${folder}/me.key"
[profiles.default.challenge]
bypass = true
`,
    ...url === undefined ? {} : { databaseUrl: url }
  })
  try {
    const session = await AcmeSession.open(server.directoryUrl)
    await session.register()
    const issue = async (many: number, from: number) => {
      for (let at = 0; at < many; at++) {
        const names = at % 10 === 9
          ? Array.from(
            { length: 60 },
            (_, part) => `${"long-".repeat(30).slice(0, 60)}${part}.${from + at}.example.org`
          )
          : [`www${from + at}.example.org`]
        await session.issue(names, new Map())
      }
    }
    const newest = async () => Math.max(...(await trailOf(server, url)).map(({ id }) => Number(id)))
    await issue(20, 0)
    await caughtUp(files.log, newest)
    // The receiver is away for a while, and comes back.
    await running.stop()
    await issue(10, 20)
    await server.waitForEvent("audit_push_failed")
    running = await startRsyslog(files)
    await caughtUp(files.log, newest)
    // The service is killed while it issues.
    const issuing = issue(30, 30).catch(() => undefined)
    await until(() => linesOf(files.log).length > 30, "rows")
    await server.kill9()
    await issuing
    await server.restart()
    const again = await AcmeSession.open(server.directoryUrl)
    await again.register()
    await again.issue(["last.example.org"], new Map())
    again.close()
    session.close()
    await caughtUp(files.log, newest)
    const rows = new Map((await trailOf(server, url)).map((row) => [Number(row["id"]), row]))
    const lines = linesOf(files.log)
    for (const line of lines) {
      const row = rows.get(idIn(line))
      const difference = row === undefined ? "no such row" : differenceOf(line, row)
      if (difference !== undefined) throw new Error(`${line.slice(0, 200)}: ${difference}`)
    }
    const got = new Set(lines.map(idIn))
    const missing = [...rows.keys()].filter((id) => !got.has(id) && id <= Math.max(...got))
    if (missing.length > 0) throw new Error(`the rows ${missing.join(", ")} are missing`)
    const first = [...got]
    if (first.some((id, at) => at > 0 && id < (first[at - 1] ?? 0))) throw new Error("the rows are not in order")
  } finally {
    await server.dispose()
    await running.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Pushes the trail from each kind of database. */
export const playTrail = async (
  createDatabase: () => Promise<string>,
  say: (text: string) => void
): Promise<ReadonlyArray<Outcome>> => {
  const outcomes: Array<Outcome> = []
  for (const database of ["SQLite", "PostgreSQL"]) {
    const begun = performance.now()
    const url = database === "SQLite" ? undefined : await createDatabase()
    const error = await play(url).then(() => undefined, (cause: unknown) => String(cause))
    const scenario = "gets every row of the audit trail"
    const milliseconds = performance.now() - begun
    const outcome = { database, client: "rsyslog", challenge: "", scenario, milliseconds }
    outcomes.push(error === undefined ? outcome : { ...outcome, error })
    if (error !== undefined) say(`--- rsyslog on ${database}\n${error}\n---`)
  }
  return outcomes
}

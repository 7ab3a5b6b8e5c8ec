import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import type { Server } from "node:http"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { idText, sqlAt } from "../support/OpenDatabase.ts"
import { freePort } from "../support/Ports.ts"
import type { Findings } from "./Auditor.ts"
import type { Site } from "./Site.ts"
import { Tally } from "./Tally.ts"

/** A notification as it arrived. */
interface Notice {
  readonly hook: string
  readonly delivery_id: string
  readonly account_id?: string
  readonly order_id?: string
}

/**
 * The ways in which a webhook is unavailable. At the same time the program is removed, or replaced by one that fails, or
 * by one that does not end.
 */
export const absences = ["refuses connections", "answers 503", "never answers"] as const

/** A webhook and a program that get every notification and can be made unavailable. */
export interface Receivers {
  /** The lines of the configuration that name the receivers. */
  readonly toml: string
  /** The number of notifications that the webhook has read but perhaps not answered yet. */
  readonly arrived: Tally
  readonly leave: (how: (typeof absences)[number]) => Promise<void>
  readonly comeBack: () => Promise<void>
  /** Compares what the receivers got with the database once the queue has only periodic jobs. */
  readonly audit: (site: Site) => Promise<Findings>
  /** The number of notifications that were sent again. */
  readonly repeats: () => number
  readonly close: () => Promise<void>
}

const keyOf = ({ account_id, hook, order_id }: Notice): string => `${hook} ${order_id ?? account_id ?? ""}`

/** Returns the events that have happened, according to the rows. */
const happened = async ({ databaseUrl }: Site): Promise<ReadonlySet<string>> => {
  const of = async (event: string, text: string) =>
    (await sqlAt(databaseUrl, text)).map((row) => `${event} ${idText(row["id"])}`)
  return new Set([
    ...await of("account_created", "SELECT id FROM accounts"),
    ...await of("account_deactivated", "SELECT id FROM accounts WHERE status = 'deactivated'"),
    ...await of("certificate_issued", "SELECT id FROM orders WHERE cert_serial IS NOT NULL"),
    ...await of("certificate_revoked", "SELECT id FROM orders WHERE revoked_at IS NOT NULL")
  ])
}

/** Returns what the service stored and logged about the deliveries of an event to a receiver. */
const traces = async ({ databaseUrl, processes }: Site, target: string, key: string): Promise<string> => {
  const records = processes.flatMap((server) => server.records())
  const jobs = await sqlAt(
    databaseUrl,
    `SELECT dedup_key, payload, status, attempts, last_error FROM jobs
     WHERE kind = 'notify_deliver' AND dedup_key LIKE '%/${target}'`
  )
  const lines = jobs.flatMap(({ attempts, dedup_key, last_error, payload, status }) => {
    const { fields } = JSON.parse(String(payload)) as { readonly fields: Notice }
    if (keyOf(fields) !== key) return []
    const logged = records.filter((record) =>
      record.fields["delivery_id"] === fields.delivery_id &&
      target === `${record.fields["backend"]}/${record.fields["entry"]}`
    )
    return [
      `${String(dedup_key)} is ${String(status)} after ${String(attempts)} attempts: ${String(last_error)}`,
      ...logged.map((record) => JSON.stringify(record))
    ]
  })
  return (lines.length === 0 ? ["no job is stored"] : lines).map((line) => `\n  ${line}`).join("")
}

/** Returns the differences between what a receiver got and what happened. */
const compare = async (
  site: Site,
  { name, notices, target }: {
    readonly name: string
    /** The backend and the entry of the receiver. */
    readonly target: string
    readonly notices: ReadonlyArray<Notice>
  },
  facts: ReadonlySet<string>
): Promise<Findings> => {
  const ids = new Map<string, Set<string>>()
  for (const notice of notices) {
    const key = keyOf(notice)
    if (!facts.has(key)) throw new Error(`the ${name} was told of ${key}, which has not happened`)
    ids.set(key, (ids.get(key) ?? new Set()).add(notice.delivery_id))
  }
  const lost: Array<string> = []
  for (const key of facts) {
    if (!ids.has(key)) lost.push(`the ${name} was not told of ${key}${await traces(site, target, key)}`)
  }
  return {
    lost,
    twice: [...ids].filter(([, of]) => of.size > 1).map(([key, of]) => `the ${name} knows ${key} by ${of.size} ids`)
  }
}

/** Starts the receivers. The webhook takes `answerMillis` to answer. */
export const startReceivers = async (answerMillis = 0): Promise<Receivers> => {
  const home = mkdtempSync(join(tmpdir(), "acme-receivers-"))
  const [program, next, told] = [join(home, "tell"), join(home, "next"), join(home, "told")]
  /** Replaces the program by a rename, so that a shell that starts it reads either the old one or the new one. */
  const place = (command: string) => {
    writeFileSync(next, `#!/bin/sh\n${command}\n`, { mode: 0o755 })
    renameSync(next, program)
  }
  // Each line is one write, so that programs that run at the same time do not mix their lines.
  const tell = () => place(`exec printf '%s\\n' "$(cat)" >> '${told}'`)
  tell()
  const notices: Array<Notice> = []
  const arrived = new Tally()
  const port = await freePort()
  let absence: (typeof absences)[number] | undefined
  let server: Server | undefined
  const listen = async () => {
    server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        if (absence === "never answers") return
        if (absence === "answers 503") return response.writeHead(503).end()
        notices.push(JSON.parse(Buffer.concat(chunks).toString("utf8")) as Notice)
        arrived.add()
        void delay(answerMillis).then(() => response.end())
      })
    })
    await new Promise<void>((done) => server?.listen(port, "127.0.0.1", done))
  }
  const close = async () => {
    server?.closeAllConnections()
    await new Promise((done) => server === undefined ? done(undefined) : server.close(done))
    server = undefined
  }
  await listen()
  const programTold = (): ReadonlyArray<Notice> =>
    existsSync(told)
      ? readFileSync(told, "utf8").split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Notice)
      : []
  const members = ["hook", "delivery_id", "account_id", "order_id"].map((name) => `"${name}": {{ ${name} | tojson }}`)
  return {
    // The shell may have started the program without having opened its file when the program is removed. The shell then
    // ends with an exit code, as a program that failed does. So only an entry with `retry` gets every event.
    toml: `[notify]\nenabled = ["webhook", "custom"]\nwebhook_enabled = ["log"]\ncustom_enabled = ["tell"]\n`
      + `[notify.webhook.log]\nurl = "http://127.0.0.1:${port}/"\ntimeout_ms = 2000\nevents = ${events}\n`
      + `body = '{${members.join(", ")}}'\n`
      + `[notify.custom.tell]\nscript_path = "${program}"\ntimeout_ms = 2000\nretry = true\nevents = ${events}\n`,
    arrived,
    leave: async (how) => {
      absence = how
      if (how === "answers 503") return place("exit 1")
      if (how === "never answers") return place("exec sleep 60")
      rmSync(program)
      await close()
    },
    comeBack: async () => {
      absence = undefined
      tell()
      server?.closeAllConnections()
      if (server === undefined) await listen()
    },
    audit: async (site) => {
      const facts = await happened(site)
      const found = [
        await compare(site, { name: "webhook", target: "webhook/log", notices }, facts),
        await compare(site, { name: "program", target: "custom/tell", notices: programTold() }, facts)
      ]
      return { lost: found.flatMap(({ lost }) => lost), twice: found.flatMap(({ twice }) => twice) }
    },
    repeats: () =>
      [notices, programTold()].reduce(
        (sum, of) => sum + of.length - new Set(of.map(keyOf)).size,
        0
      ),
    close: async () => {
      await close()
      rmSync(home, { recursive: true, force: true })
    }
  }
}

const events = `["account_created", "account_deactivated", "certificate_issued", "certificate_revoked"]`

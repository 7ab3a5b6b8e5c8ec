import { chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
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

/** The ways in which a webhook is unavailable. */
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

/** Returns the differences between what a receiver got and what happened. */
const compare = (name: string, notices: ReadonlyArray<Notice>, facts: ReadonlySet<string>): Findings => {
  const ids = new Map<string, Set<string>>()
  for (const notice of notices) {
    const key = keyOf(notice)
    if (!facts.has(key)) throw new Error(`the ${name} was told of ${key}, which has not happened`)
    ids.set(key, (ids.get(key) ?? new Set()).add(notice.delivery_id))
  }
  return {
    lost: [...facts].filter((key) => !ids.has(key)).map((key) => `the ${name} was not told of ${key}`),
    twice: [...ids].filter(([, of]) => of.size > 1).map(([key, of]) => `the ${name} knows ${key} by ${of.size} ids`)
  }
}

/** Starts the receivers. The webhook takes `answerMillis` to answer. */
export const startReceivers = async (answerMillis = 0): Promise<Receivers> => {
  const home = mkdtempSync(join(tmpdir(), "acme-receivers-"))
  const [program, away, told] = [join(home, "tell"), join(home, "away"), join(home, "told")]
  // Each line is one write, so that programs that run at the same time do not mix their lines.
  writeFileSync(program, `#!/bin/sh\nexec printf '%s\\n' "$(cat)" >> '${told}'\n`)
  chmodSync(program, 0o755)
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
    toml: `[notify]\nenabled = ["webhook", "custom"]\nwebhook_enabled = ["log"]\ncustom_enabled = ["tell"]\n`
      + `[notify.webhook.log]\nurl = "http://127.0.0.1:${port}/"\ntimeout_ms = 2000\nevents = ${events}\n`
      + `body = '{${members.join(", ")}}'\n`
      + `[notify.custom.tell]\nscript_path = "${program}"\nevents = ${events}\n`,
    arrived,
    leave: async (how) => {
      absence = how
      renameSync(program, away)
      if (how === "refuses connections") await close()
    },
    comeBack: async () => {
      absence = undefined
      renameSync(away, program)
      server?.closeAllConnections()
      if (server === undefined) await listen()
    },
    audit: async (site) => {
      const facts = await happened(site)
      const found = [compare("webhook", notices, facts), compare("program", programTold(), facts)]
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

import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import type { Scope } from "effect"
import { TestClock } from "effect/testing"
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { run } from "../../src/app/Cli.ts"
import { Host } from "../../src/app/Host.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import type { Record as LogRecord } from "../../src/engine/telemetry/EventLog.ts"
import { Passwords } from "../../src/services/operators/Passwords.ts"
import { apiOf } from "../support/Api.ts"
import type { Told } from "../support/Asked.ts"
import { configOf, openDriver, profileOf, world } from "../support/Graph.ts"
import { settingsIn, signerOf } from "../support/LocalCa.ts"
import { startsAt } from "../support/Operators.ts"
import { panelOf } from "../support/Panel.ts"
import { policiesOf } from "../support/Policies.ts"
import { hostOf } from "../support/RunCommand.ts"
import { fileIn, makeDatabase, rewinding, toml, writeCa } from "./Ground.ts"
import { makeNormal } from "./Normal.ts"
import { textOf } from "./Page.ts"
import type { CommandPlay, Group, RequestPlay } from "./Play.ts"
import type { Answer, Outcome } from "./Recording.ts"
import { recorded } from "./Recording.ts"

/*
 * Plays a group on a new database. The clock and the random values are fixed, and after each play everything is
 * restored.
 */

/** How long a play may take before it counts as hanging. */
const patienceMs = 10_000

const headersTold = [
  "allow",
  "cache-control",
  "content-disposition",
  "content-type",
  "hx-redirect",
  "hx-retarget",
  "hx-reswap",
  "hx-reselect",
  "location",
  "retry-after",
  "set-cookie",
  "www-authenticate"
]

/** Returns the body of a request as a short text for the name of the play. */
const bodyWords = (body: unknown): string => {
  const text = body === undefined ? "" : body instanceof URLSearchParams || typeof body === "string"
    ? String(body)
    : body instanceof Uint8Array
    ? `${body.length} octets`
    : JSON.stringify(body)
  return text.length > 160 ? `${text.slice(0, 160)}… (${text.length})` : text
}

const askedBy = ({ body, by, headers = {}, method = "GET", target }: RequestPlay): string => {
  const more = Object.entries(headers).filter(([name]) => name !== "authorization" && name !== "hx-request").map((
    [name, value]
  ) => `${name}: ${String(value).slice(0, 40)}`)
  const path = target.length > 200 ? `${target.slice(0, 200)}… (${target.length})` : target
  return [`${method} ${path}`, bodyWords(body), ...more, `by ${by}`].filter((one) => one !== "").join(" ")
}

/** Returns a list under this name, or nothing if the list is empty. */
const ifAny = <K extends string>(name: K, list: ReadonlyArray<string>): { readonly [_ in K]?: ReadonlyArray<string> } =>
  (list.length === 0 ? {} : { [name]: list }) as { readonly [_ in K]?: ReadonlyArray<string> }

/** Ends an effect that hangs. This uses the machine's clock, because the clock of the plays does not advance. */
const unlessHangs = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A | "hangs", E, R> =>
  Effect.raceFirst(
    self,
    Effect.callback<"hangs">((resume) => {
      const timer = setTimeout(() => resume(Effect.succeed("hangs")), patienceMs)
      return Effect.sync(() => clearTimeout(timer))
    })
  )

/** Returns these texts without the empty ones. */
const ifSaid = (texts: Readonly<Record<"body" | "stderr", string>>): Pick<Answer, "body" | "stderr"> =>
  Object.fromEntries(
    Object.entries(texts).filter(([, text]) => text !== "").map(([name, text]) => [name, recorded(text)])
  )

const requestOutcome = (
  play: RequestPlay,
  told: Told | "hangs",
  { isPanel, normal, records }: {
    readonly isPanel: boolean
    readonly normal: (text: string) => string
    readonly records: ReadonlyArray<LogRecord>
  }
): Outcome => {
  const { name } = play
  const asked = askedBy(play)
  if (told === "hangs") return { name, asked, answer: { status: told }, texts: {} }
  const headers = Object.entries(told.headers).filter(([header, value]) =>
    headersTold.includes(header) && !(header === "cache-control" && value === "no-store")
  ).map(([header, value]) => [header, normal(value)] as const)
  const isPage = isPanel && (told.headers["content-type"] ?? "").startsWith("text/html")
  const texts = { body: normal(isPage ? textOf(told.text, name.includes("whole")) : told.text), stderr: "" }
  const events = [...new Set(records.map(({ event }) => event))]
  return {
    name,
    asked,
    answer: { status: told.status, headers: Object.fromEntries(headers), ...ifSaid(texts), ...ifAny("log", events) },
    texts
  }
}

const commandOutcome = (
  { name, words }: CommandPlay,
  ended: { readonly code: number; readonly out: string; readonly err: string } | "hangs",
  normal: (text: string) => string
): Outcome => {
  const asked = words.map((word) => word.length > 80 ? `${word.slice(0, 80)}… (${word.length})` : JSON.stringify(word))
    .join(" ")
  if (ended === "hangs") return { name, asked, answer: { status: ended }, texts: {} }
  const texts = { body: normal(ended.out), stderr: normal(ended.err) }
  return { name, asked, answer: { status: ended.code, ...ifSaid(texts) }, texts }
}

/** Returns the parts of an answer, as separate outcomes. */
const partsOf = ({ parts }: RequestPlay, { answer, asked, name, texts }: Outcome): ReadonlyArray<Outcome> =>
  parts === undefined ? [] : parts(texts["body"] ?? "").map(([part, text]) => ({
    name: `${name}: ${part}`,
    asked,
    answer: { status: answer.status, body: recorded(text) },
    texts: { body: text }
  }))

const withAudit = (outcome: Outcome, events: ReadonlyArray<string>): Outcome => ({
  ...outcome,
  answer: { ...outcome.answer, ...ifAny("audit", events) }
})

/** Makes a directory with a database whose rows are the same for each play. */
const useGround = (template: string): Effect.Effect<
  { readonly directory: string; readonly rewind: () => ReadonlyArray<string> },
  never,
  Scope.Scope
> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const directory = mkdtempSync(join(tmpdir(), "acme-replay-"))
      copyFileSync(fileIn(template), fileIn(directory))
      writeCa(directory)
      const { close, rewind } = rewinding(fileIn(directory))
      return { directory, rewind, close }
    }),
    ({ close, directory }) =>
      Effect.sync(() => {
        close()
        rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
      })
  )

const playRequests = Effect.fnUntraced(function*(
  group: Extract<Group, { readonly surface: "api" | "panel" }>,
  template: string
) {
  const { directory, rewind } = yield* useGround(template)
  const config = configOf(group.isStrict === true ? toml.replace("[admin]\n", "[admin]\nrequire_mfa = true\n") : toml)
  const signer = signerOf(settingsIn(directory))
  const profiles = ["default", "other"].map((name) => ({ ...profileOf(config, name), signer }))
  const driver = yield* openDriver(`sqlite://${fileIn(directory)}`)
  const records: Array<LogRecord> = []
  const played = Effect.gen(function*() {
    const { ask } = group.surface === "api" ? yield* apiOf(config) : yield* panelOf(config)
    const outcomes: Array<Outcome> = []
    for (const play of group.plays) {
      records.length = 0
      const told = yield* unlessHangs(ask(play.target, play))
      const facts = { isPanel: group.surface === "panel", normal: makeNormal(directory), records }
      const outcome = withAudit(requestOutcome(play, told, facts), rewind())
      outcomes.push(outcome, ...partsOf(play, outcome))
    }
    return outcomes
  })
  return yield* played.pipe(
    Effect.provide(Layer.provideMerge(
      Passwords.layer({ iterations: 2, recoveryIterations: 1 }),
      world({ seed: group.noun, records, profiles, policies: policiesOf(config) })
    )),
    Effect.provideService(Database, driver)
  )
})

const playCommands = Effect.fnUntraced(function*(
  group: Extract<Group, { readonly surface: "cli" }>,
  template: string
) {
  const { directory, rewind } = yield* useGround(template)
  const configuration = `${toml}[profiles.default]\n[profiles.other]\n`
  const outcomes: Array<Outcome> = []
  for (const play of group.plays) {
    const files = { "config.toml": configuration, ...play.files }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text, { mode: 0o600 })
    const said = { out: "", err: "" }
    const host = Layer.succeed(Host, hostOf(directory, said, play.around ?? {}))
    const ended = yield* unlessHangs(Effect.provide(run(play.words), Layer.merge(host, NodeServices.layer)))
    const normal = makeNormal(directory)
    const outcome = commandOutcome(play, ended === "hangs" ? ended : { code: ended, ...said }, normal)
    outcomes.push(withAudit(outcome, rewind()))
  }
  return outcomes
})

/** Makes the database with which every group begins, in a directory that is removed afterwards. */
export const withTemplate = async <A>(use: (template: string) => Promise<A>): Promise<A> => {
  const template = mkdtempSync(join(tmpdir(), "acme-replay-"))
  try {
    await Effect.runPromise(makeDatabase(template))
    return await use(template)
  } finally {
    rmSync(template, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Plays a group. */
export const playGroup = (group: Group, template: string): Promise<ReadonlyArray<Outcome>> =>
  Effect.runPromise(
    Effect.andThen(
      TestClock.setTime(startsAt * 1000),
      group.surface === "cli" ? playCommands(group, template) : playRequests(group, template)
    ).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.orDie)
  )

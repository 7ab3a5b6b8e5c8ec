import { Effect } from "effect"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { unplayedCommands, unplayedPages, unplayedRoutes } from "./Coverage.ts"
import { decided } from "./decided.ts"
import { differenceOf } from "./Difference.ts"
import { groups } from "./Groups.ts"
import type { Options } from "./Options.ts"
import { readOptions } from "./Options.ts"
import { groupName } from "./Play.ts"
import type { Answer, Outcome } from "./Recording.ts"
import { read, written } from "./Recording.ts"
import { playGroup, withTemplate } from "./Stage.ts"

/* `npm run replay`: asks the surfaces of operators what was asked of an earlier build, and says what they answer otherwise. */

const folder = join(import.meta.dirname, "recordings")
const fileOf = (name: string): string => join(folder, `${name}.jsonl`)
const say = (text: string): boolean => process.stdout.write(`${text}\n`)

/** How many differences are told in full, unless all are asked for. */
const mostTold = 40

/** What today's build answers, group by group. */
const played = async (
  { only }: Options,
  each: (name: string, outcomes: ReadonlyArray<Outcome>) => void
): Promise<void> => {
  const chosen = groups.filter((group) => only.length === 0 || only.some((word) => groupName(group).includes(word)))
  if (chosen.length === 0) throw new Error(`no group has ${only.join(" or ")} in its name`)
  await withTemplate(async (template) => {
    for (const group of chosen) {
      const begun = Date.now()
      const outcomes = await playGroup(group, template)
      const name = groupName(group)
      each(name, outcomes)
      process.stderr.write(`${name}: ${outcomes.length} in ${((Date.now() - begun) / 1000).toFixed(1)} s\n`)
    }
  })
}

const record = async (options: Options): Promise<void> => {
  mkdirSync(folder, { recursive: true })
  if (options.only.length === 0) { for (const file of readdirSync(folder)) rmSync(join(folder, file)) }
  let count = 0
  await played(options, (name, outcomes) => {
    writeFileSync(fileOf(name), written(outcomes))
    count += outcomes.length
  })
  say(`${count} recorded`)
}

/** What was recorded of a group. */
const recordedOf = (name: string): ReadonlyMap<string, Answer> =>
  existsSync(fileOf(name)) ? read(readFileSync(fileOf(name), "utf8")) : new Map<string, Answer>()

const documentPlay = "service.api: GET /api/openapi.json good"

const play = async (options: Options): Promise<boolean> => {
  let [same, differ, agreed] = [0, 0, 0]
  const unused = new Set(decided)
  const seen = new Set<RegExp>()
  let document: string | undefined
  const tell = (title: string, lines: ReadonlyArray<string>): void => {
    if (options.all || differ <= mostTold) say([title, ...lines, ""].join("\n"))
    else say(title)
  }
  const judge = (title: string, lines: ReadonlyArray<string>): void => {
    const reasons = decided.filter(({ plays }) => plays.test(title))
    for (const { plays } of reasons) seen.add(plays)
    if (lines.length === 0) {
      same++
      return
    }
    const [reason] = reasons
    if (reason === undefined) {
      differ++
      tell(title, lines)
      return
    }
    agreed++
    for (const one of reasons) unused.delete(one)
    if (options.decided) tell(`${title}\n  decided: ${reason.reason}`, lines)
  }
  await played(options, (name, outcomes) => {
    const before = recordedOf(name)
    const now = new Set(outcomes.map((outcome) => outcome.name))
    for (const outcome of outcomes) {
      const title = `${name}: ${outcome.name}`
      if (title === documentPlay) document = outcome.texts["body"]
      judge(title, differenceOf(before.get(outcome.name), outcome))
    }
    for (const gone of before.keys()) {
      if (!now.has(gone)) judge(`${name}: ${gone}`, ["  It is recorded and was not played."])
    }
  })
  const missing = options.only.length > 0 ? [] : [
    ...document === undefined ? [] : unplayedRoutes(document),
    ...await Effect.runPromise(unplayedCommands),
    ...unplayedPages
  ]
  for (const one of missing) say(`No play asks for ${one}`)
  // With some of the groups, a decision about another one says nothing.
  const stale = [...unused].filter(({ plays }) => options.only.length === 0 || seen.has(plays))
  for (const { plays, reason } of stale) say(`Decided, and no longer different: ${plays} (${reason})`)
  if (agreed > 0) say(`${agreed} differ as decided`)
  say(`${same} same, ${differ} differ`)
  return differ === 0 && stale.length === 0
}

try {
  const options = readOptions(process.argv.slice(2))
  if (options.record) await record(options)
  else if (!await play(options)) process.exitCode = 1
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

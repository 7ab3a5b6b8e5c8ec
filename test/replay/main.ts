import { Effect } from "effect"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { unplayed } from "./Coverage.ts"
import { decided } from "./decided.ts"
import { differenceOf } from "./Difference.ts"
import { groups } from "./Groups.ts"
import type { Options } from "./Options.ts"
import { readOptions } from "./Options.ts"
import { groupName } from "./Play.ts"
import type { Answer, Outcome } from "./Recording.ts"
import { read, written } from "./Recording.ts"
import { playGroup, withTemplate } from "./Stage.ts"

/*
 * `npm run replay` sends recorded requests to the surfaces of operators. An earlier build has answered the same
 * requests, and the differences between its answers and the present ones are printed.
 */

const folder = join(import.meta.dirname, "recordings")
const fileOf = (name: string): string => join(folder, `${name}.jsonl`)
const say = (text: string): boolean => process.stdout.write(`${text}\n`)

/** Returns the answers of today's build, group by group. */
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

/** Returns the recording of a group. */
const recordedOf = (name: string): ReadonlyMap<string, Answer> =>
  existsSync(fileOf(name)) ? read(readFileSync(fileOf(name), "utf8")) : new Map<string, Answer>()

/** Plays that differ in the same way. */
interface Alike {
  readonly titles: Array<string>
  readonly asked: string
  readonly lines: ReadonlyArray<string>
  readonly reason: string | undefined
}

/** How many of the plays that differ alike are named. */
const mostNamed = 5

const tell = ({ asked, lines, reason, titles }: Alike, { all }: Options): void => {
  const [first = "", ...others] = titles
  const named = all ? others : others.slice(0, mostNamed)
  say([
    first,
    ...asked === "" ? [] : [`  asked  ${asked}`],
    ...reason === undefined ? [] : [`  decided: ${reason}`],
    ...lines,
    ...others.length === 0 ? [] : [`  Alike in ${others.length} more:`, ...named.map((title) => `    ${title}`)],
    ...named.length < others.length ? ["    …"] : [],
    ""
  ].join("\n"))
}

const play = async (options: Options): Promise<boolean> => {
  let [same, differ, agreed] = [0, 0, 0]
  const unused = new Set(decided)
  const seen = new Set<RegExp>()
  const differences = new Map<string, Alike>()
  const judge = (title: string, asked: string, lines: ReadonlyArray<string>): void => {
    const reasons = decided.filter(({ plays }) => plays.test(title))
    for (const { plays } of reasons) seen.add(plays)
    if (lines.length === 0) {
      same++
      return
    }
    for (const one of reasons) unused.delete(one)
    const reason = reasons[0]?.reason
    if (reason === undefined) differ++
    else agreed++
    const key = [reason ?? "", ...lines].join("\n")
    const alike = differences.get(key)
    if (alike === undefined) differences.set(key, { titles: [title], asked, lines, reason })
    else alike.titles.push(title)
  }
  await played(options, (name, outcomes) => {
    const before = recordedOf(name)
    const now = new Set(outcomes.map((outcome) => outcome.name))
    for (const outcome of outcomes) {
      const title = `${name}: ${outcome.name}`
      judge(title, outcome.asked, differenceOf(before.get(outcome.name), outcome))
    }
    for (const gone of before.keys()) {
      if (!now.has(gone)) judge(`${name}: ${gone}`, "", ["  It is recorded and was not played."])
    }
  })
  for (const alike of differences.values()) {
    if (alike.reason === undefined || options.decided) tell(alike, options)
  }
  const missing = options.only.length > 0 ? [] : await Effect.runPromise(unplayed)
  for (const one of missing) say(`No play asks for ${one}`)
  // If only some groups are played, a decision about another group does not count.
  const stale = [...unused].filter(({ plays }) => options.only.length === 0 || seen.has(plays))
  for (const { plays, reason } of stale) say(`Decided, and no longer different: ${plays} (${reason})`)
  if (agreed > 0) say(`${agreed} differ as decided`)
  say(`${same} same, ${differ} differ`)
  return differ === 0 && stale.length === 0 && missing.length === 0
}

try {
  const options = readOptions(process.argv.slice(2))
  if (options.record) await record(options)
  else if (!await play(options)) process.exitCode = 1
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

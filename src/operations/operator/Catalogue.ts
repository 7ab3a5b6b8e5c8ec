import type { AuditEvent } from "../../domain/Audit.ts"
import { auditEvents } from "../../domain/Audit.ts"
import type { OperatorCode } from "../../domain/OperatorProblem.ts"
import { operatorCodes } from "../../domain/OperatorProblem.ts"
import { problemRows } from "../../domain/Problem.ts"
import { acmeError } from "../../domain/ProblemDocument.ts"
import type { CauseRecord } from "../../domain/ProblemRecords.ts"
import { operatorRecords, recordsOf } from "../../domain/ProblemRecords.ts"
import type { EventName } from "../../domain/words/Log.ts"
import { events } from "../../domain/words/Log.ts"
import { auditEventMeanings } from "../../domain/words/meanings/AuditEventMeanings.ts"
import { codeMeanings } from "../../domain/words/meanings/CodeMeanings.ts"
import { saidOfEvent } from "../../domain/words/meanings/EventMeanings.ts"
import type { Said } from "../../domain/words/meanings/Meaning.ts"
import { saidBy } from "../../domain/words/meanings/Meaning.ts"
import { problemMeanings } from "../../domain/words/meanings/ProblemMeanings.ts"
import { series } from "../../domain/words/Series.ts"
import { environmentPrefix, nearestOf, variableOf } from "../../engine/config/KeyPath.ts"
import type { Declaration } from "../../engine/telemetry/Declaration.ts"
import { targetOf } from "../../engine/telemetry/LogFilter.ts"
import type { Series } from "../../engine/telemetry/Metrics.ts"
import { defaultOf, isOverridable, sections, typeOf } from "../../settings/Example.ts"

/*
 * The catalogue of the words that operators meet: events of the log and of the trail, errors, keys and metrics. All of
 * it is made from the declarations, so no word is missing.
 */

/** The kinds of words, each with its name for people. */
export const kindsOfWords = {
  event: "log event",
  problem: "ACME problem type",
  code: "API error code",
  audit_event: "audit event",
  key: "configuration key",
  metric: "metric"
} as const

/** One of {@link kindsOfWords}. */
export type KindOfWord = keyof typeof kindsOfWords

/** A word with its meaning, and the facts that its kind has. */
export interface Word {
  readonly kind: KindOfWord
  readonly name: string
  readonly meaning: string
  /** What to do about it. Absent if nothing has to be done. */
  readonly remedy?: string
  /** The pages that say more, as paths in the repository. */
  readonly pages: ReadonlyArray<string>
  /** The level, the outcome, the target for `logging.filter` and the fields of a log event. */
  readonly level?: string
  readonly outcome?: string
  readonly target?: string
  readonly fields?: ReadonlyArray<string>
  /** The HTTP statuses of an error, and the log events that say more about it. */
  readonly statuses?: ReadonlyArray<number>
  readonly events?: ReadonlyArray<string>
  /** The accepted values, the default and the environment variable of a key, and whether a profile may override it. */
  readonly form?: string
  readonly default?: string
  readonly variable?: string
  readonly isPerProfile?: boolean
  /** The type and the labels of a metric. */
  readonly type?: string
  readonly labels?: ReadonlyArray<string>
}

/** The pages with an anchor for each event, and for each section of the configuration. */
const [eventPage, keyPage] = ["docs/reference/log-events.md", "docs/reference/configuration.md"]

const withPages = ({ page, ...said }: Said, own: string): Pick<Word, "meaning" | "remedy" | "pages"> => ({
  ...said,
  pages: [...page === undefined ? [] : [`docs/${page}`], own]
})

const eventWord = (name: EventName): Word => {
  const { fields, level, outcome }: Declaration = events[name]
  return {
    kind: "event",
    name,
    ...withPages(saidOfEvent(name), `${eventPage}#${name}`),
    level,
    outcome,
    target: targetOf(name),
    fields
  }
}

const distinct = <A>(all: ReadonlyArray<A>): ReadonlyArray<A> => [...new Set(all)]

const eventsIn = (records: ReadonlyArray<CauseRecord>): ReadonlyArray<string> =>
  distinct(records.map(({ event }) => event))

type ProblemSuffix = keyof typeof problemMeanings

const isProblem = (name: string): name is ProblemSuffix => Object.hasOwn(problemMeanings, name)

const suffixOf = (text: string): string => text.startsWith(acmeError) ? text.slice(acmeError.length) : text

const problemWord = (name: ProblemSuffix): Word => {
  const rows = problemRows.filter(({ type }) => type === name)
  return {
    kind: "problem",
    name,
    ...withPages(saidBy(problemMeanings[name]), "docs/reference/errors.md#types-of-problems"),
    statuses: distinct(rows.map(({ status }) => status)).toSorted((one, other) => one - other),
    events: eventsIn(rows.flatMap(({ tag }) => recordsOf(tag)))
  }
}

const codeWord = (name: OperatorCode): Word => {
  const rows = operatorCodes.filter(({ code }) => code === name)
  return {
    kind: "code",
    name,
    ...withPages(saidBy(codeMeanings[name]), "docs/reference/errors.md#codes-of-the-api"),
    statuses: distinct(rows.map(({ status }) => status)),
    events: eventsIn(rows.flatMap(({ tag }) => operatorRecords[tag] ?? []))
  }
}

const auditWord = (name: AuditEvent): Word => ({
  kind: "audit_event",
  name,
  ...withPages(saidBy(auditEventMeanings[name]), "docs/reference/log-events.md#events-of-the-audit-trail")
})

const keyWords = (): ReadonlyArray<Word> =>
  sections().flatMap((section) =>
    section.keys.map((declared) => ({
      kind: "key",
      name: declared.path.join("."),
      meaning: declared.facts.doc,
      pages: [`${keyPage}#${declared.path[0] ?? ""}`],
      form: typeOf(declared).replaceAll("`", ""),
      default: defaultOf(declared),
      variable: variableOf(declared.path),
      ...section.path[0] === "profiles" ? {} : { isPerProfile: isOverridable(section) }
    }))
  )

const metricWord = ([name, { help, kind, labels }]: [string, Series]): Word => ({
  kind: "metric",
  name,
  meaning: help,
  pages: ["docs/reference/metrics.md#series"],
  type: kind === "sampledCounter" ? "counter" : kind,
  labels: Object.keys(labels)
})

const made = (): ReadonlyArray<Word> => [
  ...Object.keys(events).map((name) => eventWord(name as EventName)),
  ...Object.keys(problemMeanings).filter(isProblem).map(problemWord),
  ...distinct(operatorCodes.map(({ code }) => code)).map(codeWord),
  ...auditEvents.map(auditWord),
  ...keyWords(),
  ...Object.entries<Series>(series).map(metricWord)
]

let kept: ReadonlyArray<Word> | undefined

/**
 * Returns every word of the catalogue: the events first, then errors, keys and metrics. The words are made when they are
 * first needed, because pages of the panel need only a few meanings.
 */
export const everyWord = (): ReadonlyArray<Word> => kept ??= made()

/** Returns the dotted key for the name of its variable. A text that names no variable is returned unchanged. */
const keyOfVariable = (text: string): string =>
  text.startsWith(environmentPrefix)
    ? text.slice(environmentPrefix.length).toLowerCase().split("__").join(".")
    : text

/** Returns whether a text is a name of the word. In the name of a key, `<name>` stands for any name. */
const isNamed = ({ isPerProfile, kind, name }: Word, text: string): boolean => {
  if (text === name) return true
  if (kind !== "key") return false
  const given = keyOfVariable(text).split(".")
  const parts = name.split(".")
  const fits = (path: ReadonlyArray<string>) =>
    path.length === parts.length &&
    parts.every((part, at) => part === path[at] || (part === "<name>" && path[at] !== ""))
  return fits(given) || (isPerProfile === true && given[0] === "profiles" && given[1] !== "" && fits(given.slice(2)))
}

/**
 * Returns all words with this name. There may be several, because an event of the log and an event of the trail can
 * have the same name. A problem type can also be named by its whole URN, and a key by its environment variable, or with
 * the name of a profile or of an entry in it. If no word has exactly this name, upper and lower case are ignored.
 */
export const wordsNamed = (text: string): ReadonlyArray<Word> => {
  const all = everyWord()
  const wanted = suffixOf(text)
  const exact = all.filter((word) => isNamed(word, wanted))
  return exact.length > 0
    ? exact
    : all.filter(({ name }) => name.toLowerCase() === wanted.toLowerCase())
}

/** Returns the three names that are nearest to a name that is not in the catalogue. */
export const nearestNames = (text: string): ReadonlyArray<string> =>
  nearestOf(text, distinct(everyWord().map(({ name }) => name)), 3)

/** Returns the words whose name, meaning or remedy contains a text, in capital or small letters. */
export const wordsWith = (text: string): ReadonlyArray<Word> => {
  const wanted = text.toLowerCase()
  return everyWord().filter(({ meaning, name, remedy = "" }) =>
    [name, meaning, remedy].some((part) => part.toLowerCase().includes(wanted))
  )
}

/**
 * Returns what a problem type means, of which the text is the suffix or the whole URN. Returns undefined if this version
 * does not know the type.
 */
export const saidOfProblem = (text = ""): Said | undefined => {
  const suffix = suffixOf(text)
  return isProblem(suffix) ? saidBy(problemMeanings[suffix]) : undefined
}

/** Returns what an error code of the API means. */
export const saidOfCode = (code: OperatorCode): Said => saidBy(codeMeanings[code])

/** Returns what an event of the trail means. Returns undefined if this version does not know the event. */
export const saidOfAuditEvent = (event: string): Said | undefined =>
  Object.hasOwn(auditEventMeanings, event) ? saidBy(auditEventMeanings[event as AuditEvent]) : undefined

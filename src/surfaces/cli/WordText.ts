import type { Word } from "../../operations/operator/Catalogue.ts"
import { kindsOfWords } from "../../operations/operator/Catalogue.ts"
import { renderDetail } from "./Detail.ts"
import type { Rendered } from "./Rendered.ts"
import { stacked } from "./Rendered.ts"
import { renderTable } from "./TextTable.ts"

const renderWord = (word: Word): Rendered =>
  renderDetail({
    word: word.name,
    kind: kindsOfWords[word.kind],
    means: word.meaning,
    do: word.remedy ?? (word.kind === "event" || word.kind === "audit_event" ? "nothing has to be done" : undefined),
    level: word.level,
    outcome: word.outcome,
    target: word.target,
    fields: word.fields,
    status: word.statuses?.map(String),
    "log events": word.events,
    value: word.form,
    default: word.default,
    variable: word.variable,
    profiles: word.isPerProfile === undefined
      ? undefined
      : word.isPerProfile
      ? "a profile may override it"
      : "for the whole process",
    type: word.type,
    labels: word.labels,
    see: word.pages
  })

/** Renders words with all their facts, one below the other. */
export const renderWords = (words: ReadonlyArray<Word>): Rendered => stacked(words.map(renderWord), "\n\n")

/** Renders the words that a search has found, one in each line. */
export const renderFound = (words: ReadonlyArray<Word>): Rendered =>
  renderTable(
    ["word", "kind", "means"],
    words.map(({ kind, meaning, name }) => [name, kindsOfWords[kind], meaning]),
    words.length
  )

/** Renders how many words of each kind there are, and how to look one up. */
export const renderKinds = (words: ReadonlyArray<Word>): Rendered =>
  stacked([
    renderTable(
      ["kind", "words", "such as"],
      Object.entries(kindsOfWords).map(([kind, said]) => {
        const own = words.filter((word) => word.kind === kind)
        return [said, String(own.length), own[0]?.name ?? ""]
      }),
      Object.keys(kindsOfWords).length
    ),
    "`acme-svc explain WORD` explains a word, and `acme-svc explain --search TEXT` finds words."
  ], "\n")

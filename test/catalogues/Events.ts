import { fields } from "../../src/domain/words/EventField.ts"
import type { EventName } from "../../src/domain/words/Log.ts"
import { events } from "../../src/domain/words/Log.ts"
import { auditEventMeanings } from "../../src/domain/words/meanings/AuditEventMeanings.ts"
import { saidOfEvent } from "../../src/domain/words/meanings/EventMeanings.ts"
import type { Declaration } from "../../src/engine/telemetry/Declaration.ts"
import { targetOf } from "../../src/engine/telemetry/LogFilter.ts"
import { linked, prose, tableOf } from "./Markdown.ts"
import { renderMeanings } from "./Meanings.ts"

const byName = ([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number => one < other ? -1 : 1

const declared: ReadonlyArray<[string, Declaration]> = Object.entries<Declaration>(events).toSorted(byName)

const eventPart = ([name, { fields: own, level, outcome }]: readonly [string, Declaration]): string => {
  const { meaning, page, remedy } = saidOfEvent(name as EventName)
  return [
    `#### ${name}`,
    prose(meaning),
    ...remedy === undefined
      ? []
      : [`_What to do:_ ${prose(remedy)}${page === undefined ? "" : ` See ${linked(page)}.`}`],
    `Level \`${level}\`, outcome \`${outcome}\`${
      own.length === 0 ? ", no fields" : `; fields ${own.map((field) => `\`${field}\``).join(", ")}`
    }.`
  ].join("\n\n")
}

/** Returns the events of each target, with an anchor for each event. */
const eventParts = (): ReadonlyArray<string> => {
  const targets = [...new Set(declared.map(([name]) => targetOf(name)))]
  return targets.flatMap((target) => [
    `### ${target}`,
    ...declared.filter(([name]) => targetOf(name) === target).map(eventPart)
  ])
}

const fieldTable = (): string =>
  tableOf(
    ["Field", "Type", "Events"],
    Object.entries(fields).toSorted(byName).map(([name, type]) => [
      name,
      type,
      String(declared.filter(([, { fields: own }]) => (own as ReadonlyArray<string>).includes(name)).length)
    ])
  )

/**
 * Returns the catalogue of `docs/reference/log-events.md`: every record that the service can write, every field that
 * a record may have, and every event of the audit trail.
 */
export const renderEvents = (): string =>
  [
    ...eventParts(),
    "### Fields",
    fieldTable(),
    "### Events of the audit trail",
    "These events are in rows of the audit trail. `acme-svc audit list --event EVENT` finds them.",
    renderMeanings("Event", auditEventMeanings)
  ].join("\n\n")

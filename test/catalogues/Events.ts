import { fields } from "../../src/domain/words/EventField.ts"
import { events } from "../../src/domain/words/Log.ts"
import type { Declaration } from "../../src/engine/telemetry/Declaration.ts"
import { targetOf } from "../../src/engine/telemetry/LogFilter.ts"
import { tableOf } from "./Markdown.ts"

const byName = ([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number => one < other ? -1 : 1

const declared: ReadonlyArray<[string, Declaration]> = Object.entries<Declaration>(events).toSorted(byName)

const eventTable = (): string =>
  tableOf(
    ["Event", "Level", "Outcome", "Target", "Fields"],
    declared.map(([name, { fields: own, level, outcome }]) => [name, level, outcome, targetOf(name), own.join(", ")])
  )

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
 * Returns the catalogue of `docs/log-events.md`: every record that the service can write, and every field that a record
 * may have.
 */
export const renderEvents = (): string => ["### Events", eventTable(), "### Fields", fieldTable()].join("\n\n")

import { escapeHidden } from "../HiddenText.ts"
import type { Node } from "./Key.ts"
import { declaredKeys } from "./Key.ts"

/** The text with which every variable of the service begins. */
export const environmentPrefix = "ACME_SVC_"

/** The only variable that is not a key: it names the configuration file. */
export const fileVariable = `${environmentPrefix}CONFIG`

/**
 * Returns the variable of a key: for `server.tls.enabled` this is `ACME_SVC_SERVER__TLS__ENABLED`. A `-` in the name of
 * an entry becomes `_`.
 */
export const variableOf = (path: ReadonlyArray<string>): string =>
  environmentPrefix + path.map((segment) => segment.toUpperCase().replaceAll("-", "_")).join("__")

const bare = /^[A-Za-z0-9_-]+$/

/** Quotes a part of a key that is not a bare TOML key. Every character that could control a terminal is escaped. */
const printable = (segment: string): string => bare.test(segment) ? segment : escapeHidden(JSON.stringify(segment))

/** Returns the dotted key of a path. */
export const dotted = (path: ReadonlyArray<string>): string => path.map(printable).join(".")

/** Returns the name of a variable in a form that is safe to print. */
export const printableVariable = (variable: string): string => printable(variable)

const distance = (left: string, right: string): number => {
  let previous = Array.from({ length: right.length + 1 }, (_, column) => column)
  for (const [row, character] of [...left].entries()) {
    const current = [row + 1]
    for (const [column, other] of [...right].entries()) {
      const replaced = (previous[column] ?? 0) + (character === other ? 0 : 1)
      current.push(Math.min(replaced, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1))
    }
    previous = current
  }
  return previous.at(-1) ?? 0
}

/**
 * Returns every key. Each `<name>` in a key is replaced by the part of `path` at the same place, with `-` for each `_`,
 * because no name contains `_`.
 */
const candidatesFor = (table: Node, path: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  declaredKeys(table).map((declared) =>
    declared.path.map((segment, index) => segment === "<name>" ? path[index]?.replaceAll("_", "-") ?? segment : segment)
  )

const ranked = (wanted: string, candidates: ReadonlyArray<string>) =>
  candidates.map((candidate) => ({ candidate, edits: distance(wanted.slice(0, 200), candidate) }))

/** Returns the candidate whose edit distance to the wanted name is smallest. */
export const nearest = (wanted: string, candidates: ReadonlyArray<string>): string =>
  ranked(wanted, candidates).reduce((best, next) => next.edits < best.edits ? next : best).candidate

/** Returns the candidates whose edit distances to the wanted name are smallest, the nearest first. */
export const nearestOf = (wanted: string, candidates: ReadonlyArray<string>, most: number): ReadonlyArray<string> =>
  ranked(wanted, candidates).sort((one, other) => one.edits - other.edits).slice(0, most).map(({ candidate }) =>
    candidate
  )

/**
 * Returns `server.base_url` for `places.web.server.base_url`, if entries of `places` inherit unset keys and
 * `server.base_url` is a process-wide key.
 */
const processWide = (table: Node, path: ReadonlyArray<string>) => {
  const [first = "", , ...rest] = path
  const holder = table._tag === "Section" ? table.fields.get(first) : undefined
  if (holder?._tag !== "Entries" || holder.names.inheritsAs === undefined) return undefined
  const key = rest.join(".")
  const found = declaredKeys(table).find((declared) => declared.path.join(".") === key)?.path
  return found && { path: found, of: holder.names.inheritsAs }
}

/** Returns why an unknown key is refused. The sentence names the nearest known key. */
export const unknownKey = (table: Node, path: ReadonlyArray<string>): string => {
  const wide = processWide(table, path)
  if (wide !== undefined) {
    return `is not a known key: ${dotted(wide.path)} is process-wide and cannot be set for a ${wide.of}`
  }
  return `is not a known key; the nearest is ${nearest(dotted(path), candidatesFor(table, path).map(dotted))}`
}

/** Returns the same as {@link unknownKey} for an unknown variable. */
export const unknownVariable = (table: Node, variable: string): string => {
  const path = variable.slice(environmentPrefix.length).toLowerCase().split("__")
  const wide = processWide(table, path)
  if (wide !== undefined) {
    return `is not a known key: ${dotted(wide.path)} (${
      variableOf(wide.path)
    }) is process-wide and cannot be set for a ${wide.of}`
  }
  const keys = new Map(candidatesFor(table, path).map((candidate) => [variableOf(candidate), dotted(candidate)]))
  const found = nearest(variable, [fileVariable, ...keys.keys()])
  const key = keys.get(found)
  return `is not a known key; the nearest is ${key === undefined ? found : `${key} (${printable(found)})`}`
}

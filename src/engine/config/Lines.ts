import * as Result from "effect/Result"
import type { AST } from "toml-eslint-parser"
import { parseTOML } from "toml-eslint-parser"
import { dotted } from "./KeyPath.ts"

/*
 * Finds the line of a key in a TOML file. Only messages about faults need lines, so this is loaded when there is a
 * fault.
 */

/** The line of each key of a file and of each table, counted from 1, by the dotted key. */
export type Lines = ReadonlyMap<string, number>

type Path = ReadonlyArray<string>

const segmentsOf = ({ keys }: AST.TOMLKey): Path => keys.map((key) => key.type === "TOMLBare" ? key.name : key.value)

type Found = readonly [path: Path, line: number]

const ofPair = (at: Path, { key, value }: AST.TOMLKeyValue): ReadonlyArray<Found> => {
  const path = [...at, ...segmentsOf(key)]
  const below = value.type === "TOMLInlineTable" ? value.body.flatMap((pair) => ofPair(path, pair)) : []
  return [[path, key.loc.start.line], ...below]
}

const ofProgram = ({ body: [top] }: AST.TOMLProgram): ReadonlyArray<Found> =>
  top.body.flatMap((node): ReadonlyArray<Found> => {
    if (node.type === "TOMLKeyValue") return ofPair([], node)
    const path = segmentsOf(node.key)
    return [[path, node.loc.start.line], ...node.body.flatMap((pair) => ofPair(path, pair))]
  })

/** Returns the lines of a file's keys. A table without its own line gets the line of the first key below it. */
export const linesOf = (text: string): Lines => {
  const program = Result.getOrUndefined(Result.try(() => parseTOML(text, { tomlVersion: "next" })))
  const lines = new Map<string, number>()
  for (const [path, line] of program === undefined ? [] : ofProgram(program)) {
    lines.set(dotted(path), line)
    for (let length = path.length - 1; length > 0; length--) {
      const table = dotted(path.slice(0, length))
      if (!lines.has(table)) lines.set(table, line)
    }
  }
  return lines
}

/**
 * Returns the line of the first given key that the file has. If the file has none of the keys, returns the line of the
 * innermost table in which the first key is missing.
 */
export const lineOf = (lines: Lines, ...keys: readonly [string, ...ReadonlyArray<string>]): number | undefined => {
  const found = keys.find((key) => lines.has(key))
  if (found !== undefined) return lines.get(found)
  const end = keys[0].lastIndexOf(".")
  return end === -1 ? undefined : lineOf(lines, keys[0].slice(0, end))
}

import * as Result from "effect/Result"
import type { AST } from "toml-eslint-parser"
import { parseTOML } from "toml-eslint-parser"
import { dotted } from "./KeyPath.ts"

/*
 * Finds the line of a key in a TOML file. Lines are needed only in messages about faults, so this module is loaded only
 * if there is a fault.
 */

/** The lines of the keys and tables of a file, by the dotted key. The first line is 1. */
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

/**
 * Returns the lines of the keys of a file. If a table has no line of its own, its line is the line of the first key in
 * it.
 */
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
 * Returns the line of the first given key that the file contains. If the file contains none of the keys, returns the
 * line of the innermost table that could contain the first one.
 */
export const lineOf = (lines: Lines, ...keys: readonly [string, ...ReadonlyArray<string>]): number | undefined => {
  const found = keys.find((key) => lines.has(key))
  if (found !== undefined) return lines.get(found)
  const end = keys[0].lastIndexOf(".")
  return end === -1 ? undefined : lineOf(lines, keys[0].slice(0, end))
}

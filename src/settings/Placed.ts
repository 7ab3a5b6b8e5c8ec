import * as nodePath from "node:path"
import type { Node } from "../engine/config/Key.ts"
import type { Config } from "./AppConfig.ts"
import { table } from "./Table.ts"

/** Makes the relative paths in a value below a node of the table absolute. All other values stay unchanged. */
const placed = (cwd: string, node: Node | undefined, value: unknown): unknown => {
  const absolute = (path: unknown) => typeof path === "string" && path !== "" ? nodePath.resolve(cwd, path) : path
  if (node?._tag === "Key") {
    if (node.facts.isPath !== true) return value
    return Array.isArray(value) ? value.map(absolute) : absolute(value)
  }
  if (node === undefined || typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) {
    return value.map((one: unknown) => placed(cwd, node._tag === "Entries" ? node.entry : node, one))
  }
  const child = (name: string) => node._tag === "Entries" ? node.entry : node.fields.get(name)
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, placed(cwd, child(name), one)]))
}

/**
 * Returns the configuration with its relative paths made absolute against a directory, so that the working directory of
 * the process no longer matters.
 */
export const withFilesAt = (cwd: string, config: Config): Config => placed(cwd, table, config) as Config

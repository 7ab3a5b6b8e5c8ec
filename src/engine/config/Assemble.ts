import * as Result from "effect/Result"
import type { Node } from "./Key.ts"
import { dotted } from "./KeyPath.ts"
import type { Entry, Layer, Written } from "./Source.ts"

/** Where a value in force comes from. */
export type Source = "default" | "file" | "env"

/** The place where a value in force was written. */
interface Origin {
  /**
   * The key as it was written. If its value was unusable, this is still the written key, although the default is in
   * force. If nothing was written, this is the process-wide key.
   */
  readonly key: string
  readonly source: Source
}

/** The table of keys, with a value for each key. */
export interface Assembled {
  /** The tree that a schema of keys decodes. */
  readonly tree: unknown
  /** For each key in force, by its full name, the origin of the value. */
  readonly origins: ReadonlyMap<string, Origin>
}

/** All layers merged into one. */
export interface Layers {
  readonly values: ReadonlyMap<string, Written>
  readonly entries: ReadonlyArray<Entry>
}

/** Compares two names by their code units. */
export const byName = (left: string, right: string): number => left < right ? -1 : 1

/** Merges layers. The value of a later layer replaces the value of an earlier layer. */
export const merge = (layers: ReadonlyArray<Layer>): Layers => ({
  values: new Map(layers.flatMap(({ written }) => written.map((one) => [one.key, one]))),
  entries: layers.flatMap(({ entries }) => entries)
})

/**
 * Fills in the table. Each key is looked up in each of `places` in turn, so that an entry inherits the keys that it
 * does not set. A key without a usable value gets its default.
 */
export const assemble = (root: Node, { entries, values }: Layers, unusable: ReadonlySet<string>): Assembled => {
  const origins = new Map<string, Origin>()
  const fill = (node: Node, places: ReadonlyArray<ReadonlyArray<string>>): unknown => {
    const below = (name: string) => places.map((place) => [...place, name])
    const keys = places.map(dotted)
    if (node._tag === "Section") {
      return Object.fromEntries([...node.fields].map(([name, child]) => [name, fill(child, below(name))]))
    }
    if (node._tag === "Entries") {
      const names = entries.filter((entry) => keys.includes(entry.table)).map((entry) => entry.name)
      return Object.fromEntries(
        [...new Set(names)].sort(byName).map((name) => [
          name,
          node.names.inheritsAs !== undefined && node.entry._tag === "Section"
            ? Object.fromEntries([...node.entry.fields].map(([section, child]) => [
              section,
              fill(child, [...below(name).map((place) => [...place, section]), [section]])
            ]))
            : fill(node.entry, below(name))
        ])
      )
    }
    const written = keys.map((key) => values.get(key)).find((one) => one !== undefined)
    const origin = written ?? { key: keys.at(-1) ?? "", source: "default" as const }
    const isDefault = written === undefined || unusable.has(written.key)
    origins.set(keys[0] ?? "", { key: origin.key, source: isDefault ? "default" : origin.source })
    return isDefault
      ? node.facts.default
      : Result.getOrElse(written.raw, () => node.facts.default)
  }
  return { tree: fill(root, [[]]), origins }
}

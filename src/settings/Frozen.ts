import * as Redacted from "effect/Redacted"
import type { Config } from "./AppConfig.ts"

const isSection = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Redacted.isRedacted(value)

const plain = (value: unknown): unknown => Redacted.isRedacted(value) ? Redacted.value(value) : value

const differing = (key: string, before: unknown, after: unknown): ReadonlyArray<string> =>
  isSection(before) && isSection(after)
    ? [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) =>
      differing(`${key}.${name}`, before[name], after[name])
    )
    : plain(before) === plain(after)
    ? []
    : [key]

/**
 * The keys that a reload would change but must not: all of `database.*` and `tracing.*`, and `server.reuse_port`
 * (docs/decisions/configuration.md, "Frozen keys").
 */
export const frozenChanges = (before: Config, after: Config): ReadonlyArray<string> => [
  ...differing("database", before.database, after.database),
  ...differing("tracing", before.tracing, after.tracing),
  ...differing("server.reuse_port", before.server.reuse_port, after.server.reuse_port)
]

import type { Config } from "./AppConfig.ts"
import { differing } from "./Changes.ts"

/**
 * Returns the keys that differ in the new configuration, but that a reload must not change: all keys of `database.*`
 * and `tracing.*`, and also `server.processes` and `server.reuse_port` (docs/contribute/decisions/configuration.md,
 * "Frozen keys").
 */
export const frozenChanges = (before: Config, after: Config): ReadonlyArray<string> => [
  ...differing("database", before.database, after.database),
  ...differing("tracing", before.tracing, after.tracing),
  ...differing("server.processes", before.server.processes, after.server.processes),
  ...differing("server.reuse_port", before.server.reuse_port, after.server.reuse_port)
]

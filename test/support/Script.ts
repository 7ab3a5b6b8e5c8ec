import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { freshDirectory } from "./Databases.ts"

/** Writes a program of shell lines into a directory of its own, and returns its path. */
export const shellScript = (body: string, mode = 0o755): string => {
  const path = join(freshDirectory(), "script")
  writeFileSync(path, `#!/bin/sh\n${body}\n`)
  chmodSync(path, mode)
  return path
}

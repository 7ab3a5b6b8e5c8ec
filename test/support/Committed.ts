import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"

/** Returns a file of the repository, by its path from the root. */
export const committed = (file: string): string =>
  readFileSync(join(resolve(import.meta.dirname, "../.."), file), "utf8")

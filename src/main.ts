#!/usr/bin/env node
import * as Module from "node:module"
import { fileURLToPath } from "node:url"
import { setFlagsFromString } from "node:v8"
import { loadBundle } from "./app/Bundle.ts"
import type * as Program from "./app/Program.ts"
import { unfit } from "./app/Runtime.ts"

// `src/main.ts` and `dist/main.js` are at the same depth.
const root = new URL("../", import.meta.url)
const require = Module.createRequire(import.meta.url)
const versionIn = (file: string): string | undefined => {
  try {
    return (require(file) as { readonly version: string }).version
  } catch {
    return undefined
  }
}

// Load nothing else before this check, because an unfit runtime or driver would end the process without a message.
const fault = unfit(process.versions.node, versionIn("better-sqlite3/package.json"))
if (fault !== undefined) {
  process.stderr.write(`${fault}\n`)
  process.exit(1)
}
// Keeps garbage small in relation to the memory in use. On a machine with much memory, V8 would otherwise let garbage
// grow to a multiple of the memory in use. docs/contribute/bench.md (Memory) says what this costs. V8 ignores stored
// code that was compiled with other flags, so the flag is set before the program is loaded.
setFlagsFromString("--heap-growing-percent=100")

const load = async (): Promise<typeof Program> => {
  if (import.meta.url.endsWith(".ts")) return import("./app/Program.ts")
  const bundle = fileURLToPath(new URL("dist/program.cjs", root))
  // The code is beside the program, not in a folder that others can write: it is executed.
  const { exports, store } = loadBundle<typeof Program>(bundle, fileURLToPath(new URL("dist/compiled", root)))
  process.once("exit", store)
  return exports
}

const { start } = await load()
start({
  version: versionIn("../package.json") ?? "",
  migrations: fileURLToPath(new URL("migrations", root)),
  panel: { folder: fileURLToPath(new URL("panel", root)), htmx: require.resolve("htmx.org/dist/htmx.min.js") },
  site: fileURLToPath(new URL("dist/site", root))
})

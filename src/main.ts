#!/usr/bin/env node
import * as Module from "node:module"
import { fileURLToPath } from "node:url"
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
// The cache is beside the program, not in a folder that others can write: files in it are executed.
Module.enableCompileCache(fileURLToPath(new URL("dist/compiled", root)))
const { start } = await import("./app/Program.ts")
start({
  version: versionIn("../package.json") ?? "",
  migrations: fileURLToPath(new URL("migrations", root)),
  panel: { folder: fileURLToPath(new URL("panel", root)), htmx: require.resolve("htmx.org/dist/htmx.min.js") }
})

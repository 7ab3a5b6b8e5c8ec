import { spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { delimiter, join, resolve } from "node:path"
import { runCommand } from "../interop/Command.ts"
import type { OnTerminal } from "../support/OnTerminal.ts"
import { onTerminal } from "../support/OnTerminal.ts"

/* A clone of the repository, as a newcomer has it. */

const repository = resolve(import.meta.dirname, "../..")

/**
 * Returns the environment of a newcomer: this one without the packages of this repository, without the variables that
 * npm sets for its own programs, and with the command `acme-svc` of the clone, as the documents define it.
 */
export const environment = (clone: string, scratch: string): Readonly<Record<string, string>> => {
  const kept = Object.entries(process.env).filter(([name]) => !/^npm_(?!config_(?:registry|cafile)$)|^ACME_/.test(name))
  const bin = join(scratch, "bin")
  mkdirSync(bin, { recursive: true })
  const program = `${clone}/node_modules/.bin/node' '${clone}/dist/main.js`
  writeFileSync(join(bin, "acme-svc"), `#!/bin/sh\nexec '${program}' "$@"\n`, { mode: 0o755 })
  const others = (process.env["PATH"] ?? "").split(delimiter).filter((one) => !one.includes("node_modules"))
  return {
    ...Object.fromEntries(kept.map(([name, value]) => [name, value ?? ""])),
    NO_COLOR: "1",
    PATH: [bin, ...others, "/usr/sbin", "/sbin"].join(delimiter)
  }
}

/** Clones the last commit. */
export const cloneInto = (directory: string): Promise<string> =>
  runCommand("git", ["clone", "--quiet", "--no-hardlinks", repository, directory])

/** Runs a command line of a page in the clone, and returns its output. */
export const typedIn = (clone: string, scratch: string, line: string, timeoutMs = 300_000): Promise<string> =>
  runCommand("sh", ["-c", line], { cwd: clone, env: environment(clone, scratch), timeoutMs })

/** Runs a command line of a page on a terminal in the clone. */
export const onTerminalIn = (
  clone: string,
  scratch: string,
  line: string,
  variables: Readonly<Record<string, string>> = {}
): OnTerminal =>
  onTerminal(line, { directory: clone, env: { ...environment(clone, scratch), USER: "newcomer", ...variables } })

/** Removes everything from a clone that is neither in the repository nor made by `npm ci`. */
export const cleared = (clone: string): void => {
  const { status, stderr } = spawnSync("git", ["clean", "-fdxq", "-e", "node_modules", "-e", "dist"], {
    cwd: clone,
    encoding: "utf8"
  })
  if (status !== 0) throw new Error(stderr)
}

/** What the text of a start ends with. */
export const started = /\/profile\/default\/\n/

/** Matches the link that sets the first password. */
export const linkOnScreen = /^ {2}(http:\/\/localhost:\d+\/ui\/link#[\w-]{43})$/m

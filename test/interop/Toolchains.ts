import { runCommand } from "./Command.ts"

/* Compilers of which Debian's version is older than current clients need. They are used if they are installed. */

const isOlder = (here: string, wanted: string): boolean => {
  const [a, b] = [here, wanted].map((version) => version.split(".").map(Number))
  for (const [at, part] of (b ?? []).entries()) {
    const one = a?.[at] ?? 0
    if (one !== part) return one < part
  }
  return false
}

/**
 * Returns nothing if a toolchain of at least this version is available, and otherwise the reason: it is absent or too
 * old.
 */
export const lacks = async (command: "cargo" | "go" | "javac", wanted: string): Promise<string | undefined> => {
  const words = command === "go" ? ["env", "GOVERSION"] : ["--version"]
  // The version of the toolchain itself. A toolchain that would download a newer version counts as its present version.
  const env = { HOME: process.env["HOME"] ?? "/", GOTOOLCHAIN: "local" }
  const said = await runCommand(command, words, { env }).catch(() => undefined)
  const here = /\d+(?:\.\d+)+/.exec(said ?? "")?.[0]
  if (here === undefined) return `it is compiled with ${command} ${wanted} or newer, which is not here`
  return isOlder(here, wanted) ? `it is compiled with ${command} ${wanted} or newer, and ${here} is here` : undefined
}

/**
 * Returns nothing if a compiled program is available, and otherwise the reason: it is not kept, and its toolchain is
 * missing. The gate does not compile programs, because a compilation takes minutes.
 */
export const lacksCompiled = async (
  isKept: boolean,
  ...toolchain: Parameters<typeof lacks>
): Promise<string | undefined> => {
  if (isKept) return undefined
  return process.env["CI"] === "true" ? "it takes minutes to compile, and is not kept here" : lacks(...toolchain)
}

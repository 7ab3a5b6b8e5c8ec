import { spawnSync } from "node:child_process"

/* Ends the programs of this folder with a sentence and never with a stack trace. */

/** Ends the program. The exit code is 1 if this host could not do the work, and 2 if the command line is wrong. */
export const endWith = (code: 1 | 2, sentence: string): never => {
  process.stderr.write(`${sentence}\n`)
  process.exit(code)
}

/** Returns the result of a step. If the step fails, the program ends with this code. */
export const orEnd = async <A>(code: 1 | 2, step: () => A | Promise<A>): Promise<A> => {
  try {
    return await step()
  } catch (error) {
    return endWith(code, error instanceof Error ? error.message : String(error))
  }
}

const isThere = (program: string): boolean => spawnSync("sh", ["-c", "command -v \"$0\"", program]).status === 0

/**
 * Ends the program before it begins any work if a program that it needs is missing. `packages` contains the Debian
 * package of each program, and `otherwise` says what else can be done.
 */
export const needPrograms = (packages: ReadonlyMap<string, string>, otherwise: string): void => {
  const missing = [...packages].filter(([program]) => !isThere(program))
  if (missing.length === 0) return
  const [programs, names] = [missing.map(([program]) => program), [...new Set(missing.map(([, name]) => name))]]
  endWith(1, `This needs ${programs.join(", ")}. On Debian: apt-get install ${names.join(" ")}. ${otherwise}`.trim())
}

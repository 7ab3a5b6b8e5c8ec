import { readFileSync } from "node:fs"
import { join } from "node:path"
import { runCommand } from "../Command.ts"
import { kept, once, registryEnvironment } from "../Kept.ts"

/*
 * Clients from PyPI in versions that are newer than those of Debian, in a separate environment. Every file is compared
 * with its digest.
 */

const requirements = join(import.meta.dirname, "python/requirements.txt")

const pins = new Map(
  [...readFileSync(requirements, "utf8").matchAll(/^([\w.-]+)==(\S+)/gm)].map(([, name = "", version = ""]) =>
    [name, version] as const
  )
)

/** Returns the installed version of a package. */
export const pythonPackageVersion = (name: string): string => {
  const version = pins.get(name)
  if (version === undefined) throw new Error(`${requirements} does not name ${name}`)
  return version
}

/** The package with which Debian's Python makes the environment. */
export const pythonCommands: ReadonlyArray<string> = ["python3-venv"]

const python = "/usr/bin/python3"

/**
 * Returns the folder of the programs. The folder was moved, so the first lines of the programs name an interpreter that
 * does not exist. The caller must start each program with the interpreter.
 */
export const pythonPrograms = once(async () => {
  const version = await runCommand(python, ["--version"])
  const environment = await kept("python", [version, readFileSync(requirements, "utf8")], async (folder) => {
    await runCommand(python, ["-m", "venv", folder])
    const words = ["-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:", "-r", requirements]
    await runCommand(join(folder, "bin/python"), words, { env: registryEnvironment(), timeoutMs: 600_000 })
  })
  return join(environment, "bin")
})

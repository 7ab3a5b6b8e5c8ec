import { readFileSync } from "node:fs"
import { join } from "node:path"
import { runCommand } from "../Command.ts"
import { kept, once, registryEnvironment } from "../Kept.ts"

/*
 * Newer versions of clients from PyPI than Debian has, in a separate environment; every file is checked against its
 * digest.
 */

const requirements = join(import.meta.dirname, "python/requirements.txt")

const pins = new Map(
  [...readFileSync(requirements, "utf8").matchAll(/^([\w.-]+)==(\S+)/gm)].map(([, name = "", version = ""]) =>
    [name, version] as const
  )
)

/** Returns the version that is installed of a package. */
export const pythonPackageVersion = (name: string): string => {
  const version = pins.get(name)
  if (version === undefined) throw new Error(`${requirements} does not name ${name}`)
  return version
}

/** Debian's Python makes the environment. */
export const pythonCommands: ReadonlyArray<string> = ["python3-venv"]

const python = "/usr/bin/python3"

/**
 * The folder of the programs. After the folder was moved, they are started by the interpreter, not by their first line.
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

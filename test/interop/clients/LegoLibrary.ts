import { copyFileSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Names, Workplace } from "../Client.ts"
import { runCommand } from "../Command.ts"
import { isKept, kept, once, registryEnvironment } from "../Kept.ts"
import { lacksCompiled } from "../Toolchains.ts"

/*
 * The library of lego 5, with a small program. Debian's lego is older than certificate profiles. lego's own program
 * cannot be built where some modules of its DNS providers are missing, and the library needs none of them. go.sum has
 * the digest of every module.
 */

const source = join(import.meta.dirname, "lego")
const sources = ["go.mod", "go.sum", "main.go"]
const madeOf = sources.map((file) => readFileSync(join(source, file), "utf8"))

/** The version of the library. */
export const legoVersion = /lego\/v5 v(\S+)/.exec(madeOf.join())?.[1] ?? ""

const build = once(() =>
  kept("lego", madeOf, async (folder) => {
    for (const file of sources) copyFileSync(join(source, file), join(folder, file))
    const env = { ...registryEnvironment(), CGO_ENABLED: "0", GOTOOLCHAIN: "local" }
    await runCommand("go", ["build", "-trimpath", "-o", "lego", "."], { cwd: folder, env, timeoutMs: 900_000 })
  })
)

/** Returns why lego is left out, or nothing if it is here or can be built. */
export const lacksLego = (): Promise<string | undefined> => lacksCompiled(isKept("lego", madeOf), "go", "1.26")

/** Orders a certificate with a new account, and returns the chain. */
export const issueByLego = async (at: Workplace, names: Names): Promise<string> => {
  const out = join(at.home, "lego.pem")
  const flags = ["-directory", at.directoryUrl, "-port", `${at.httpPort}`, "-profile", at.kind ?? "", "-out", out]
  await runCommand(join(await build(), "lego"), [...flags, ...names], {
    env: { HOME: at.home, LEGO_CA_CERTIFICATES: at.trust }
  })
  return readFileSync(out, "utf8")
}

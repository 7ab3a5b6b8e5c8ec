import { createHash } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"

/* Programs that take minutes to compile or seconds to install are made once for each set of inputs, and kept. */

/** Returns the folder with all kept programs. It may be deleted at any time between two runs. */
export const keptIn = (env: NodeJS.ProcessEnv = process.env): string =>
  env["ACME_TEST_KEPT"] ?? join(env["XDG_CACHE_HOME"] ?? join(env["HOME"] ?? homedir(), ".cache"), "acme-svc-clients")

const folderOf = (name: string, madeOf: ReadonlyArray<string>, root: string): string => {
  const digest = createHash("sha256").update(JSON.stringify([process.platform, process.arch, ...madeOf])).digest("hex")
  return join(root, `${name}-${digest.slice(0, 16)}`)
}

/** Returns whether something that was made from these inputs is kept. */
export const isKept = (name: string, madeOf: ReadonlyArray<string>, root: string = keptIn()): boolean =>
  existsSync(folderOf(name, madeOf, root))

/**
 * Returns the folder of something that is kept. `make` fills the folder unless it exists. `madeOf` must list everything
 * that determines the content, because the content is made again only if this list changes. If two runs make the same
 * content at the same time, the result of the first one to finish is used.
 */
export const kept = async (
  name: string,
  madeOf: ReadonlyArray<string>,
  make: (folder: string) => Promise<unknown>,
  root: string = keptIn()
): Promise<string> => {
  const folder = folderOf(name, madeOf, root)
  if (existsSync(folder)) return folder
  mkdirSync(root, { recursive: true })
  const making = mkdtempSync(`${folder}.`)
  try {
    await make(making)
    renameSync(making, folder)
  } catch (error) {
    if (!existsSync(folder)) throw error
  } finally {
    rmSync(making, { recursive: true, force: true })
  }
  return folder
}

/** Calls `make` when its result is first needed, and never again in this process. */
export const once = <A>(make: () => Promise<A>): () => Promise<A> => {
  let made: Promise<A> | undefined
  return () => made ??= make()
}

/** Returns the environment of the caller, which names the registries and the CAs that are trusted for them. */
export const registryEnvironment = (): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(process.env).map(([name, value]) => [name, value ?? ""]))

import { createHash } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"

/* What takes minutes to compile or seconds to install is made once for each of what it is made of, and kept. */

/** The folder of all that is kept, which may be deleted at any time between two runs. */
export const keptIn = (env: NodeJS.ProcessEnv = process.env): string =>
  env["ACME_TEST_KEPT"] ?? join(env["XDG_CACHE_HOME"] ?? join(env["HOME"] ?? homedir(), ".cache"), "acme-svc-clients")

const folderOf = (name: string, madeOf: ReadonlyArray<string>, root: string): string => {
  const digest = createHash("sha256").update(JSON.stringify([process.platform, process.arch, ...madeOf])).digest("hex")
  return join(root, `${name}-${digest.slice(0, 16)}`)
}

/** Whether something is kept that was made of these. */
export const isKept = (name: string, madeOf: ReadonlyArray<string>, root: string = keptIn()): boolean =>
  existsSync(folderOf(name, madeOf, root))

/**
 * The folder of something kept, which `make` fills unless it is there. `madeOf` is all that decides what is in it; with another
 * list it is made anew. Another run may make the same at the same time: the first one that is done counts.
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

/** Calls `make` at the first demand, and never again in this process. */
export const once = <A>(make: () => Promise<A>): () => Promise<A> => {
  let made: Promise<A> | undefined
  return () => made ??= make()
}

/** The environment of whoever runs this: it says where registries are found, and whom to trust for them. */
export const registryEnvironment = (): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(process.env).map(([name, value]) => [name, value ?? ""]))

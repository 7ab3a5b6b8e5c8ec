import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { thisBuild } from "./Server.ts"

const run = promisify(execFile)

/** This machine can have no earlier build. The message says why. */
export class NoEarlierBuild extends Error {}

/** The build of an earlier commit. */
export interface EarlierBuild {
  readonly folder: string
  readonly commit: string
  /** The migrations that the build does not know yet, in order. */
  readonly lacks: ReadonlyArray<string>
}

const migrationsOf = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(folder, "migrations", "sqlite")).map((file) => file.replace(/\.sql$/, "")).sort()

const git = async (...words: ReadonlyArray<string>): Promise<string> =>
  (await run("git", ["-C", thisBuild, ...words])).stdout.trim()

/** Returns the commit before the one that added a migration. */
const commitBefore = async (migration: string): Promise<string> => {
  const path = `migrations/sqlite/${migration}.sql`
  const bringing = await git("log", "--diff-filter=A", "--format=%H", "--", path).catch(() => "")
  const [commit] = bringing.split("\n").filter((line) => line !== "")
  if (commit === undefined) throw new NoEarlierBuild(`the history of this clone does not say when ${path} came`)
  return git("rev-parse", "--verify", "--quiet", `${commit}^`).catch(() => {
    throw new NoEarlierBuild(`this clone has no history before ${commit.slice(0, 7)}; git fetch --unshallow gets it`)
  })
}

interface Packages {
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

const packagesOf = (folder: string): Packages =>
  JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Packages

const isInstalledFor = (sources: string): boolean => {
  const { dependencies, devDependencies } = packagesOf(thisBuild)
  const installed: Readonly<Record<string, string>> = { ...devDependencies, ...dependencies }
  const { dependencies: runsWith, devDependencies: isMadeWith } = packagesOf(sources)
  return Object.entries({ ...isMadeWith, ...runsWith }).every(([name, version]) => installed[name] === version)
}

/**
 * Makes the packages that the sources name available: the installed ones if they fit, and otherwise those of the
 * sources.
 */
const install = async (sources: string): Promise<void> => {
  if (isInstalledFor(sources)) return symlinkSync(join(thisBuild, "node_modules"), join(sources, "node_modules"))
  await run("npm", ["ci", "--ignore-scripts", "--silent"], { cwd: sources }).catch((error: Error) => {
    throw new NoEarlierBuild(`the packages of the earlier commit cannot be installed: ${error.message}`)
  })
}

/**
 * Builds the last commit that lacks a migration in a temporary folder. The folder is removed when this process ends.
 * The migration is named, because not every commit before a migration can be built.
 */
export const buildEarlier = async (without = "0057_by_id"): Promise<EarlierBuild> => {
  const commit = await commitBefore(without)
  const folder = mkdtempSync(join(tmpdir(), "acme-earlier-"))
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  const archive = join(folder, "sources.tar")
  await git("archive", "--output", archive, commit)
  const sources = join(folder, "sources")
  mkdirSync(sources)
  await run("tar", ["--extract", "--file", archive, "--directory", sources])
  await install(sources)
  await run("npm", ["run", "--silent", "build"], { cwd: sources })
  const known = new Set(migrationsOf(sources))
  return { folder: sources, commit, lacks: migrationsOf(thisBuild).filter((name) => !known.has(name)) }
}

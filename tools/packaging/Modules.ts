import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join, resolve, sep } from "node:path"

/* Selects what the service needs from node_modules on one architecture. */

interface Entry {
  readonly version?: string
  readonly integrity?: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly link?: boolean
}

/** The folder of the clone. */
export const repository = resolve(import.meta.dirname, "../..")

const { packages } = JSON.parse(readFileSync(join(repository, "package-lock.json"), "utf8")) as {
  readonly packages: { readonly [path: string]: Entry }
}

/** Runs a program until it ends. If the program fails, the error has its output. */
export const run = (program: string, words: ReadonlyArray<string>, cwd = repository): string => {
  const { error, status, stderr, stdout } = spawnSync(program, words, { cwd, encoding: "utf8", maxBuffer: 2 ** 26 })
  if (error !== undefined || status !== 0) {
    throw new Error(`${[program, ...words].join(" ")} ended with ${status}: ${error?.message ?? stderr}`)
  }
  return stdout
}

/**
 * Returns whether a file is left out. Files for compiling are left out because the drivers are compiled already.
 * Documents, types and source maps are left out because only developers need them.
 */
const isLeftOut = (path: string): boolean =>
  /\/koffi\/(?:cnoke\.cjs|doc|lib|vendor)(?:\/|$)|\/musl_\w+(?:\/|$)|\.(?:cc|hh|cmake|S|asm|inc)$/.test(path) ||
  /better-sqlite3\/(?:deps|src|binding\.gyp|node_modules)(?:\/|$)|\.(?:md|markdown|ts|map|gyp)$|node_modules\/node-addon-api(?:\/|$)/
    .test(path) ||
  /\/(?:licen[cs]e|copying|notice|authors)[^/]*$/i.test(path)

/** The folders of the packages that the service loads, below the clone. */
export const runtimePackages: ReadonlyArray<string> = Object.entries(packages)
  .filter(([path, { dev, link, optional }]) =>
    path.startsWith("node_modules/") && dev !== true && link !== true &&
    !(optional === true && !existsSync(join(repository, path))) &&
    !path.startsWith("node_modules/node-") && !isLeftOut(path)
  )
  .map(([path]) => path)
  .sort()

/** The package with the binary of koffi for a platform. */
const koffiFor = (platform: string): string => `@koromix/koffi-${platform}`

/**
 * Copies the packages into a folder. Of the binaries of the SQLite driver and of koffi, only those for one platform are
 * copied.
 */
export const copyModules = (to: string, platform: string, temporary: string): void => {
  const koffi = `node_modules/${koffiFor(platform)}`
  const paths = runtimePackages.filter((path) => !path.startsWith("node_modules/@koromix/"))
  for (const path of [...paths, koffi]) {
    cpSync(path === koffi ? packageOf(koffiFor(platform), temporary) : join(repository, path), join(to, path), {
      recursive: true,
      filter: (file) => {
        const inside = file.split(sep).join("/")
        const binary = /\/prebuilds\/(.*)\.node$/.exec(inside)?.[1]
        return binary === undefined ? !isLeftOut(inside) : binary === platform
      }
    })
  }
}

/** Returns the folder of the package `node-linux-…`. */
export const runtimeOf = (cpu: string, temporary: string): string => packageOf(`node-linux-${cpu}`, temporary)

/**
 * Returns the folder of a package. If this clone lacks the package, which may be for another platform, npm fetches it
 * and checks it against the digest in the lock file.
 */
const packageOf = (name: string, temporary: string): string => {
  const here = join(repository, "node_modules", name)
  if (existsSync(join(here, "package.json"))) return here
  const { integrity, version = "" } = packages[`node_modules/${name}`] ?? {}
  const fetched = join(temporary, name)
  mkdirSync(fetched, { recursive: true })
  run("npm", ["pack", "--pack-destination", fetched, `${name}@${version}`], temporary)
  const [tarball = ""] = readdirSync(fetched)
  const digest = createHash("sha512").update(readFileSync(join(fetched, tarball))).digest("base64")
  if (`sha512-${digest}` !== integrity) throw new Error(`${tarball} is not what package-lock.json says it is`)
  run("tar", ["--extract", "--file", tarball], fetched)
  return join(fetched, "package")
}

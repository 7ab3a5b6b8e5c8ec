import { Spec, Validation } from "@cyclonedx/cyclonedx-library"
import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { runCommand } from "../interop/Command.ts"
import type { Installation, Site } from "./Installation.ts"
import { check } from "./Installation.ts"

/* The list of what is shipped, held to its schema, to what the package brings along and to what npm installs beside it. */

const repository = resolve(import.meta.dirname, "../..")

interface Bom {
  readonly components: ReadonlyArray<{
    readonly name: string
    readonly group?: string
    readonly version: string
    readonly purl: string
    readonly licenses: ReadonlyArray<object>
    readonly properties: ReadonlyArray<{ readonly name: string; readonly value: string }>
  }>
}

const namesOf = ({ components }: Bom, way: string): ReadonlyArray<string> =>
  components.filter(({ properties }) =>
    properties.some(({ name, value }) => name === "acme-svc:shipped" && value === way)
  )
    .map(({ group, name, version }) => `${group === undefined ? "" : `${group}/`}${name} ${version}`)

/** What npm reads in the lock file, as far as it is looked at here. */
interface Tree {
  readonly version?: string
  readonly dependencies?: Readonly<Record<string, Tree>>
}

const flat = ({ dependencies = {} }: Tree): ReadonlyArray<string> =>
  Object.entries(dependencies).flatMap(([name, tree]) =>
    // What others only would like to have, and is not there, has no version.
    tree.version === undefined ? [] : [`${name} ${tree.version}`, ...flat(tree)]
  )

const play = async ({ directory, step, tarball }: Site): Promise<void> => {
  await runCommand("tar", ["--extract", `--file=${tarball}`, `--directory=${directory}`])
  const at = (file: string) => join(directory, "package", file)
  const text = readFileSync(at("dist/sbom.cdx.json"), "utf8")
  const bom: Bom = JSON.parse(text)
  await step("fits the schema", async () => {
    const faults = await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text)
    check(faults === null, JSON.stringify(faults))
    check(bom.components.every(({ licenses, purl }) => licenses.length > 0 && purl !== ""), "a licence is missing")
  })
  await step("has what is bundled", async () => {
    const notices = readFileSync(at("dist/LICENSES"), "utf8").matchAll(/^-{79}\n\n(\S+ \S+) \(/gm)
    const told = [...notices].map(([, notice]) => notice).sort().join("\n")
    check(told !== "" && told === [...namesOf(bom, "bundled")].sort().join("\n"), `the notices are of\n${told}`)
  })
  await step("has what is installed beside it", async () => {
    const env = Object.fromEntries(Object.entries(process.env).map(([name, value]) => [name, value ?? ""]))
    const words = [
      "ls",
      "--all",
      "--omit=dev",
      "--package-lock-only",
      "--workspaces=false",
      "--json",
      "--loglevel=silent"
    ]
    const tree: Tree = JSON.parse(await runCommand("npm", words, { cwd: repository, env }))
    const expected = [...new Set(flat(tree))].sort().join("\n")
    check(
      expected !== "" && expected === [...namesOf(bom, "installed")].sort().join("\n"),
      `npm would install\n${expected}`
    )
  })
}

/** `dist/sbom.cdx.json`. */
export const sbom: Installation = { name: "SBOM", commands: [], play }

import { Spec, Validation } from "@cyclonedx/cyclonedx-library"
import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { runCommand } from "../interop/Command.ts"
import type { Installation, Site } from "./Installation.ts"
import { check } from "./Installation.ts"

/*
 * Compares the list of what is shipped with its schema, with the contents of the package, and with what npm installs in
 * addition.
 */

const repository = resolve(import.meta.dirname, "../..")

/** A component that is shipped. */
export interface Component {
  readonly name: string
  readonly group?: string
  readonly version: string
  readonly "bom-ref": string
  readonly purl: string
  readonly licenses: ReadonlyArray<object>
  readonly hashes?: ReadonlyArray<{ readonly alg: string; readonly content: string }>
  readonly properties: ReadonlyArray<{ readonly name: string; readonly value: string }>
}

/** The list of what is shipped. */
export interface Bom {
  readonly metadata: { readonly component: { readonly "bom-ref": string } }
  readonly components: ReadonlyArray<Component>
  readonly dependencies: ReadonlyArray<{ readonly ref: string; readonly dependsOn?: ReadonlyArray<string> }>
}

/**
 * Reads a list, and checks that it fits the schema, names a licence for each component, and connects every component
 * with the service.
 */
export const readBom = async (file: string): Promise<Bom> => {
  const text = readFileSync(file, "utf8")
  const faults = await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text)
  check(faults === null, JSON.stringify(faults))
  const bom: Bom = JSON.parse(text)
  check(bom.components.every(({ licenses, purl }) => licenses.length > 0 && purl !== ""), "a licence is missing")
  const reached = new Set([bom.metadata.component["bom-ref"]])
  const further = new Map(bom.dependencies.map(({ dependsOn = [], ref }) => [ref, dependsOn]))
  for (const ref of reached) {
    for (const next of further.get(ref) ?? []) reached.add(next)
  }
  const alone = bom.components.map((component) => component["bom-ref"]).filter((ref) => !reached.has(ref))
  check(alone.length === 0, `nothing depends on ${alone.join(", ")}`)
  return bom
}

const propertiesOf = ({ properties }: Component, wanted: string): ReadonlyArray<string> =>
  properties.flatMap(({ name, value }) => name === wanted ? value : [])

const shippedBy = ({ components }: Bom, way: string): ReadonlyArray<Component> =>
  components.filter((component) => propertiesOf(component, "acme-svc:shipped").includes(way))

const namesOf = (bom: Bom, way: string): ReadonlyArray<string> =>
  shippedBy(bom, way).map(({ group, name, version }) => `${group === undefined ? "" : `${group}/`}${name} ${version}`)

/** Compares a list with the shipped runtime from the lock file, for an architecture in the notation of npm. */
export const listsRuntime = (bom: Bom, cpu: string): void => {
  const { packages }: { readonly packages: Readonly<Record<string, { readonly integrity?: string }>> } = JSON.parse(
    readFileSync(join(repository, "package-lock.json"), "utf8")
  )
  const [runtime, ...others] = shippedBy(bom, "runtime")
  const said = `${runtime?.purl} ${Buffer.from(runtime?.hashes?.[0]?.content ?? "", "hex").toString("base64")}`
  const expected = `pkg:npm/node-linux-${cpu}@${process.versions.node} ${
    packages[`node_modules/node-linux-${cpu}`]?.integrity?.slice("sha512-".length)
  }`
  check(said === expected && others.length === 0, `the runtime is listed as ${said}, and not as ${expected}`)
}

/**
 * Compares a list with the libraries below a folder. Each file must belong to a package whose record and licence are in
 * the folder.
 */
export const listsLibraries = (bom: Bom, root: string, files: ReadonlyArray<string>): void => {
  const libraries = shippedBy(bom, "library")
  const listed = libraries.flatMap((component) => propertiesOf(component, "acme-svc:file")).sort().join(" ")
  check(listed === files.map((file) => `/${file}`).sort().join(" "), `the libraries that are listed are ${listed}`)
  for (const { name, purl, version } of libraries) {
    const record = readFileSync(join(root, "var/lib/dpkg/status.d", name), "utf8")
    const field = (wanted: string) => new RegExp(`^${wanted}: (.*)$`, "m").exec(record)?.[1] ?? ""
    check(field("Package") === name && field("Version") === version, `${purl} is recorded as\n${record}`)
    const plain = decodeURIComponent(purl)
    check(
      plain.startsWith(`pkg:deb/debian/${name}@${version}?arch=${field("Architecture")}&distro=debian-`),
      `${name} ${version} is listed as ${purl}`
    )
    check(readFileSync(join(root, "usr/share/doc", name, "copyright"), "utf8") !== "", `${name} has no licence`)
  }
}

/** The members of npm's view of the lock file that this test reads. */
interface Tree {
  readonly version?: string
  readonly dependencies?: Readonly<Record<string, Tree>>
}

const flat = ({ dependencies = {} }: Tree): ReadonlyArray<string> =>
  Object.entries(dependencies).flatMap(([name, tree]) =>
    // An optional package that is not installed has no version.
    tree.version === undefined ? [] : [`${name} ${tree.version}`, ...flat(tree)]
  )

const play = async ({ directory, step, tarball }: Site): Promise<void> => {
  await runCommand("tar", ["--extract", `--file=${tarball}`, `--directory=${directory}`])
  const at = (file: string) => join(directory, "package", file)
  const bom = await step("fits the schema", () => readBom(at("dist/sbom.cdx.json")))
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

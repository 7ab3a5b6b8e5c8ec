import { Contrib, Enums, Models, Serialize, SPDX, Spec } from "@cyclonedx/cyclonedx-library"
import { readFileSync } from "node:fs"

/*
 * `node tools/packaging/sbom.ts dist/inputs.json dist/script.json` lists everything that is shipped, in CycloneDX 1.6,
 * for `dist/sbom.cdx.json`. The list has what esbuild has put into the bundle and into the script of the documents, and
 * the packages that are installed with the bundle. Versions, licences and digests come from the lock file. Equal
 * sources give an equal text.
 */

interface Metafile {
  readonly outputs: {
    readonly [file: string]: { readonly inputs: { readonly [file: string]: { readonly bytesInOutput: number } } }
  }
}

/** A package of the lock file. */
interface Locked {
  readonly version: string
  readonly license?: string
  readonly integrity?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

interface Lock {
  readonly packages: Readonly<Record<string, Locked>>
}

const read = (file: string): string => readFileSync(file, "utf8")
const outputs = process.argv.slice(2).flatMap((metafile) =>
  Object.values((JSON.parse(read(metafile)) as Metafile).outputs)
)
const { packages } = JSON.parse(read("package-lock.json")) as Lock
const { description, license, name, version } = JSON.parse(read("package.json")) as {
  readonly description: string
  readonly license: string
  readonly name: string
  readonly version: string
}

/**
 * Returns the place in the lock file of a file's package, or undefined for a file of this project. The folder of the
 * packages may be a link to another place.
 */
const placeOf = (file: string): string | undefined =>
  /(?<=^|\/)node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]

const bundled = new Set(
  outputs.flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => bytesInOutput > 0 ? placeOf(file) ?? [] : [])
  )
)

/**
 * Returns the place where a package finds another one, by the rules of Node.js. Returns undefined if the other package
 * is installed on no platform.
 */
const found = (from: string, wanted: string): string | undefined => {
  const place = `${from === "" ? "" : `${from}/`}node_modules/${wanted}`
  if (place in packages) return place
  const above = from.lastIndexOf("node_modules/")
  return from === "" ? undefined : found(from.slice(0, Math.max(above - 1, 0)), wanted)
}

const neededBy = (place: string): ReadonlyArray<string> => {
  const { dependencies = {}, optionalDependencies = {} } = packages[place] ?? {}
  return [...new Set([...Object.keys(dependencies), ...Object.keys(optionalDependencies)])].flatMap((wanted) =>
    found(place, wanted) ?? []
  )
}

/** The packages that are installed with the bundle, including indirect dependencies. */
const beside = new Set(neededBy(""))
for (const place of beside) {
  for (const needed of neededBy(place)) beside.add(needed)
}

const licenceOf = (text: string): Models.License => {
  const id = SPDX.fixupSpdxId(text)
  return id === undefined ? new Models.LicenseExpression(text) : new Models.SpdxLicense(id)
}

const componentOf = (place: string): Models.Component => {
  const locked = packages[place]
  if (locked?.license === undefined || locked.integrity === undefined) {
    throw new Error(`${place} is not locked with its licence`)
  }
  const full = place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length)
  const [own = "", group] = full.split("/").toReversed()
  const purl = `pkg:npm/${full.replace("@", "%40")}@${locked.version}`
  const component = new Models.Component(Enums.ComponentType.Library, own, {
    bomRef: purl,
    purl,
    version: locked.version,
    scope: Enums.ComponentScope.Required,
    hashes: new Models.HashDictionary([Contrib.FromNodePackageJson.Utils.parsePackageIntegrity(locked.integrity)]),
    licenses: new Models.LicenseRepository([licenceOf(locked.license)])
  })
  if (group !== undefined) component.group = group
  const ways = [...bundled.has(place) ? ["bundled"] : [], ...beside.has(place) ? ["installed"] : []]
  for (const way of ways) component.properties.add(new Models.Property("acme-svc:shipped", way))
  return component
}

const places = [...new Set([...bundled, ...beside])].sort()
// The same version may be in two places, but is in the list only once.
const components = new Map<string, Models.Component>()
const shipped = new Map(places.map((place) => {
  const component = componentOf(place)
  const { purl = "" } = component
  const known = components.get(purl) ?? component
  components.set(purl, known)
  return [place, known]
}))
const main = new Models.Component(Enums.ComponentType.Application, name, {
  bomRef: name,
  description,
  version,
  purl: `pkg:npm/${name}@${version}`,
  licenses: new Models.LicenseRepository([licenceOf(license)])
})
for (const [place, component] of shipped) {
  if (bundled.has(place) || neededBy("").includes(place)) main.dependencies.add(component.bomRef)
  for (const needed of neededBy(place)) {
    const other = shipped.get(needed)
    if (other !== undefined) component.dependencies.add(other.bomRef)
  }
}
const bom = new Models.Bom({
  metadata: new Models.Metadata({ component: main }),
  components: new Models.ComponentRepository(components.values())
})
const serializer = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6))
process.stdout.write(`${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`)

import { readFileSync } from "node:fs"
import { join } from "node:path"
import { repository } from "./Modules.ts"

/*
 * A package or an image contains more than npm would install: Node.js, and the libraries that Node.js is linked with.
 * This code adds them to the list that `sbom.ts` has written, because `sbom.ts` knows neither the architecture nor the
 * system.
 */

/** A component of CycloneDX 1.6, with the members that this program writes. */
export interface Component {
  readonly type: "platform" | "library"
  readonly name: string
  readonly version: string
  readonly "bom-ref": string
  readonly purl: string
  readonly cpe?: string
  readonly scope: "required"
  readonly licenses: ReadonlyArray<{ readonly license: { readonly id: string } | { readonly name: string } }>
  readonly hashes?: ReadonlyArray<{ readonly alg: "SHA-512"; readonly content: string }>
  readonly properties: ReadonlyArray<{ readonly name: string; readonly value: string }>
}

interface Bom {
  readonly metadata: { readonly component: { readonly "bom-ref": string } }
  readonly components: ReadonlyArray<object>
  readonly dependencies: ReadonlyArray<{ readonly ref: string; readonly dependsOn?: ReadonlyArray<string> }>
}

interface Locked {
  readonly version: string
  readonly license: string
  readonly integrity: string
}

/**
 * Describes Node.js as the npm package that contains it for an architecture (`x64` or `arm64`), with the digest of that
 * package.
 */
export const runtimeComponent = (cpu: string): Component => {
  const { packages }: { readonly packages: Readonly<Record<string, Locked>> } = JSON.parse(
    readFileSync(join(repository, "package-lock.json"), "utf8")
  )
  const locked = packages[`node_modules/node-linux-${cpu}`]
  if (locked === undefined) throw new Error(`package-lock.json has no Node.js for ${cpu}`)
  const { integrity, license, version } = locked
  const [, digest = ""] = /^sha512-(\S+)$/.exec(integrity) ?? []
  const purl = `pkg:npm/node-linux-${cpu}@${version}`
  return {
    type: "platform",
    name: "node",
    version,
    "bom-ref": purl,
    purl,
    // The vulnerabilities of Node.js are published under this name.
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    scope: "required",
    licenses: [{ license: { id: license } }],
    hashes: [{ alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") }],
    properties: [{ name: "acme-svc:shipped", value: "runtime" }]
  }
}

/** Adds Node.js, on which the service depends, and the libraries of Node.js to a list. Returns the new text. */
export const withRuntime = (list: string, runtime: Component, libraries: ReadonlyArray<Component>): string => {
  const bom: Bom = JSON.parse(list)
  const { component: main } = bom.metadata
  const dependencies = bom.dependencies.map(({ dependsOn = [], ref }) =>
    ref === main["bom-ref"] ? { ref, dependsOn: [...dependsOn, runtime["bom-ref"]].sort() } : { ref, dependsOn }
  )
  const linked = libraries.map((library) => library["bom-ref"])
  const added = [{ ref: runtime["bom-ref"], dependsOn: linked }, ...linked.map((ref) => ({ ref }))]
  const whole = {
    ...bom,
    components: [...bom.components, runtime, ...libraries],
    dependencies: [...dependencies, ...added]
  }
  return `${JSON.stringify(whole, null, 2)}\n`
}

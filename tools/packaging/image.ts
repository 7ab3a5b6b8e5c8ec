import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { repository, run } from "./Modules.ts"
import { type Component, runtimeComponent, withRuntime } from "./RuntimeSbom.ts"

/*
 * `node tools/packaging/image.ts ROOT LIBRARY…` runs on the Debian system that builds the image. It adds Node.js and
 * the packages of the libraries to the image's list of what is shipped. It also copies the record of each package, with
 * the licence, to the place where scanners of images look.
 */

const [, , root = "", ...libraries] = process.argv

/** The fields of /etc/os-release. */
const release = Object.fromEntries(
  [...readFileSync("/etc/os-release", "utf8").matchAll(/^(\w+)="?([^"\n]*)"?$/gm)].map((
    [, name, value]
  ) => [name, value])
)

/**
 * Returns the package of a file. The path that dpkg knows may begin with `/usr` even if the path of the loader does
 * not.
 */
const packageOf = (file: string): string => {
  const others = [file, file.startsWith("/usr/") ? file.slice("/usr".length) : `/usr${file}`]
  for (const name of others) {
    try {
      const [, found] = /^([^:,\s]+)/.exec(run("dpkg-query", ["--search", name])) ?? []
      if (found !== undefined) return found
    } catch {
      // dpkg knows the file by its other path.
    }
  }
  throw new Error(`${file} is of no package that dpkg knows; the image is built on Debian, or on what is made of it`)
}

const files = new Map<string, ReadonlyArray<string>>()
for (const library of libraries) {
  const name = packageOf(library)
  files.set(name, [...files.get(name) ?? [], library])
}

const componentOf = (name: string, paths: ReadonlyArray<string>): Component => {
  const format = ["Version", "Architecture", "source:Package"].map((field) => `\${${field}}`).join("\\n")
  const [version = "", architecture = "", source = ""] = run("dpkg-query", [
    "--show",
    `--showformat=${format}`,
    name
  ]).split("\n")
  const qualifiers = new URLSearchParams({ arch: architecture, distro: `${release["ID"]}-${release["VERSION_ID"]}` })
  if (source !== name) qualifiers.set("upstream", source)
  const purl = `pkg:deb/${release["ID"]}/${encodeURIComponent(name)}@${encodeURIComponent(version)}?${qualifiers}`
  return {
    type: "library",
    name,
    version,
    "bom-ref": purl,
    purl,
    scope: "required",
    licenses: [{ license: { name: `that of /usr/share/doc/${name}/copyright` } }],
    properties: [
      { name: "acme-svc:shipped", value: "library" },
      ...paths.map((value) => ({ name: "acme-svc:file", value }))
    ]
  }
}

const put = (file: string, write: (path: string) => void): void => {
  const path = join(root, file)
  mkdirSync(join(path, ".."), { recursive: true })
  write(path)
}

const runtime = runtimeComponent(process.arch)
if (`v${runtime.version}` !== process.version) {
  throw new Error(`this is Node.js ${process.version}, and not the one shipped`)
}
const packages = [...files].sort(([one], [other]) => one < other ? -1 : 1)
const list = readFileSync(join(repository, "dist/sbom.cdx.json"), "utf8")
writeFileSync(
  join(repository, "dist/sbom.cdx.json"),
  withRuntime(list, runtime, packages.map(([name, paths]) => componentOf(name, paths)))
)
for (const [name] of packages) {
  put(`var/lib/dpkg/status.d/${name}`, (path) => writeFileSync(path, run("dpkg-query", ["--status", name])))
  const copyright = `usr/share/doc/${name}/copyright`
  put(copyright, (path) => copyFileSync(`/${copyright}`, path))
}
put("etc/os-release", (path) => copyFileSync("/etc/os-release", path))
const licence = join(repository, "node_modules", `node-linux-${process.arch}`, "LICENSE")
put("usr/local/share/doc/node/LICENSE", (path) => copyFileSync(licence, path))

import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/*
 * `node tools/packaging/notices.ts dist/inputs.json dist/script.json` writes the licences of everything that esbuild has
 * put into the bundle and into the script of the documents, for `dist/LICENSES`. Each licence must be distributed with
 * the code, but the bundle has no comments and so no licences. If a package has no licence, the build fails.
 */

interface Metafile {
  readonly outputs: {
    readonly [file: string]: { readonly inputs: { readonly [file: string]: { readonly bytesInOutput: number } } }
  }
}

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license?: string
}

const outputs = process.argv.slice(2).flatMap((metafile) =>
  Object.values((JSON.parse(readFileSync(metafile, "utf8")) as Metafile).outputs)
)

/** Returns the folder of a file's package, or undefined for a file of this project. */
const packageOf = (file: string): string | undefined => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]

const bundled = new Set(
  outputs.flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => bytesInOutput > 0 ? packageOf(file) ?? [] : [])
  )
)

const noticeOf = (folder: string): string => {
  const { license, name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest
  const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file)).sort()
  if (license === undefined || files.length === 0) throw new Error(`${folder} does not tell its licence`)
  const texts = files.map((file) => readFileSync(join(folder, file), "utf8").trim())
  return [`${name} ${version} (${license})`, ...texts].join("\n\n")
}

const rule = "-".repeat(79)
const intro = "acme-svc itself is under the licence of the file LICENSE. Built into it are parts of these packages."
process.stdout.write(`${[intro, ...[...bundled].sort().map(noticeOf)].join(`\n\n${rule}\n\n`)}\n`)

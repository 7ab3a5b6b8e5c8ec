import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/*
 * Writes the file `copyright` of the Debian package: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0
 */

/** Indents text as the continuation of a field. */
const continued = (text: string): string =>
  text.trim().split("\n").map((line) => ` ${line.trimEnd() || "."}`).join("\n")

/** Returns the copyright holders that a text names, each once. */
const holdersOf = (text: string): ReadonlyArray<string> => [
  ...new Set(
    text.split("\n").map((line) => line.trim().replace(/^[*#\s]+/, "")).filter((line) =>
      /^(?:Portions )?Copyright\b.*(?:\d{4}|\(c\)|©)/i.test(line)
    )
  )
]

/** Returns the licence files of a package's folder as one text. */
const licenceOf = (folder: string): string =>
  readdirSync(folder).filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file)).sort()
    .map((file) => readFileSync(join(folder, file), "utf8").trim()).join("\n\n")

interface Manifest {
  readonly name: string
  readonly license?: string
  readonly author?: string | { readonly name: string }
}

const stanza = (files: string, text: string, licence: string, author: string, comment = ""): string => {
  const holders = holdersOf(text)
  return [
    `Files: ${files}`,
    `Copyright:\n${continued((holders.length > 0 ? holders : [author]).join("\n"))}`,
    `License: ${licence}`,
    ...comment === "" ? [] : [`Comment:\n${continued(comment)}`]
  ].join("\n")
}

const onDebian = "On Debian systems the Apache License, Version 2.0, is in /usr/share/common-licenses/Apache-2.0."

/** Returns a licence that packages name, with the text of the first package that has it. */
const textOf = (licence: string, texts: ReadonlyMap<string, string>): string =>
  licence === "Apache-2.0" ? onDebian : texts.get(licence) ?? licence

/** Replaces the Apache licence by a reference to Debian's copy, because Debian wants no further copies. */
const withoutApache = (text: string): string =>
  text.replaceAll(
    /^[^\n]*Apache License\n[^\n]*Version 2\.0, January 2004[^]*?(?:END OF TERMS AND CONDITIONS[^\n]*$|(?![^]))/gm,
    onDebian
  )

/**
 * Returns the text of the file, which is made from the licence of this project, the licence of the runtime, the notices
 * of bundled code, and the folders of the installed packages.
 */
export const copyrightOf = (
  { folders, notices, own, runtime }: {
    readonly own: string
    readonly runtime: string
    readonly notices: string
    readonly folders: ReadonlyArray<readonly [path: string, folder: string]>
  }
): string => {
  const texts = new Map([["MIT", own]])
  const bundled = new Set<string>()
  for (
    const [, licence = "", text = ""] of notices.matchAll(/^\S+ \S+ \(([\w.-]+)\)\n\n([^]*?)(?=\n\n-{79}\n|$(?![^]))/gm)
  ) {
    bundled.add(licence)
    if (!texts.has(licence)) texts.set(licence, text)
  }
  const beside = folders.map(([path, folder]) => {
    const { author, license = "", name } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest
    const text = licenceOf(folder)
    if (!texts.has(license)) texts.set(license, text)
    const by = typeof author === "string" ? author : author?.name ?? `the authors of ${name}`
    return { license, stanza: stanza(`usr/lib/acme-svc/${path}/*`, text, license, by, text) }
  })
  const named = new Set(["MIT", ...bundled, ...beside.map(({ license }) => license)])
  const whole = [
    [
      "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/",
      "Upstream-Name: acme-svc"
    ].join("\n"),
    stanza("*", own, "MIT", ""),
    stanza("usr/lib/acme-svc/dist/*", notices, [...bundled].sort().join(" and "), "", withoutApache(notices)),
    stanza("usr/lib/acme-svc/node", runtime, "Node.js", "Node.js contributors"),
    ...beside.map((one) => one.stanza),
    ...[...named].sort().map((licence) => `License: ${licence}\n${continued(textOf(licence, texts))}`),
    `License: Node.js\n${continued(withoutApache(runtime))}`
  ].join("\n\n")
  return `${whole}\n`
}

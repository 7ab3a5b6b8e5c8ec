import type { Declared } from "../engine/config/Key.ts"
import type { Section } from "./Example.ts"
import { defaultOf, isOverridable, sections, typeOf } from "./Example.ts"

const cell = (text: string): string => text.replaceAll("|", "\\|")

const row = (declared: Declared): string =>
  `| ${declared.path.join(".").replaceAll("<", "\\<")} | ${cell(typeOf(declared))} | \`${defaultOf(declared)}\` | `
  + `${cell(declared.facts.doc).replaceAll("<", "\\<")} |`

const sectionText = (heading: string, group: ReadonlyArray<Section>): string => {
  const [first] = group
  const scope = first !== undefined && isOverridable(first)
    ? "A profile may override each of these keys."
    : "For the whole process."
  return [
    `### ${heading}`,
    "",
    ...heading === "profiles" ? [] : [scope, ""],
    "| Key | Value | Default | Meaning |",
    "|---|---|---|---|",
    ...group.flatMap(({ keys }) => keys.map(row))
  ].join("\n")
}

/**
 * Returns the reference of all keys as Markdown, with one table for each first part of a key.
 * `docs/reference/configuration.md` contains the text verbatim, and a test checks this. To see it: `node -e
 * 'import("./src/settings/Reference.ts").then((m) => process.stdout.write(m.renderReference()))'`.
 */
export const renderReference = (): string => {
  const all = sections()
  const headings = [...new Set(all.map(({ path: [first = ""] }) => first))]
  const texts = headings.map((heading) => sectionText(heading, all.filter(({ path: [first] }) => first === heading)))
  return ["<!-- dprint-ignore-start -->", ...texts, "<!-- dprint-ignore-end -->"].join("\n\n") + "\n"
}

const start = "<!-- dprint-ignore-start -->"
const end = "<!-- dprint-ignore-end -->"

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("<", "\\<")

/** Returns a link to a page of `docs`, from a document in a folder of `docs`. */
export const linked = (page: string): string => `[docs/${page}](../${page})`

/**
 * Returns a sentence in Markdown. A path of a document becomes a link, from a document in a folder of `docs`. A
 * sentence in Markdown may begin with `<` only in backticks.
 */
export const prose = (text: string): string =>
  text.replaceAll(/\bdocs\/([\w./-]+\w)/g, (_, path: string) => linked(path))

/** Returns a table in Markdown, whatever its cells contain. */
export const tableOf = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, head.map(() => "---"), ...rows.map((row) => row.map(cell))].map((row) => `| ${row.join(" | ")} |`).join("\n")

/** Replaces the text between the marks of a document. */
export const replaced = (document: string, text: string): string => {
  const [from, to] = [document.indexOf(start), document.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`There is no ${start} with ${end} behind it.`)
  return `${document.slice(0, from)}${start}\n\n${text}\n\n${document.slice(to)}`
}

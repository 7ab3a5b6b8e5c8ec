import { readdirSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"

/* The documents of the repository, and the commands in them. */

export const repository = resolve(import.meta.dirname, "../..")

/** Returns the text of a file of the repository. */
export const text = (file: string): string => readFileSync(join(repository, file), "utf8")

export const documents: ReadonlyArray<string> = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "SECURITY.md",
  ...readdirSync(join(repository, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`)
    .toSorted()
]

interface Block {
  readonly document: string
  readonly language: string
  readonly body: string
}

/** Returns the fenced blocks of a text, each with the last line before it. */
export const bodiesIn = (markdown: string) =>
  [...markdown.matchAll(/^( *)```(\w*)\n(.*?)^\1```$/gms)].map((
    { 1: indent = "", 2: language = "", 3: body = "", index }
  ) => ({
    before: markdown.slice(0, index).trimEnd().split("\n").at(-1)?.trim() ?? "",
    language,
    body: body.replaceAll(new RegExp(`^${indent}`, "gm"), "")
  }))

const blocksOf = (document: string): ReadonlyArray<Block> =>
  bodiesIn(text(document)).map(({ body, language }) => ({ document, language, body }))

/** The fenced blocks of all documents. */
export const blocks: ReadonlyArray<Block> = documents.flatMap(blocksOf)

/** Returns the contents of the blocks of a document in this language. */
export const bodiesOf = (document: string, language: string): ReadonlyArray<string> =>
  blocks.filter((block) => block.document === document && block.language === language).map(({ body }) => body)

/** Returns a text in one line, with single spaces. */
export const oneLine = (command: string): string => command.replaceAll(/\s+/g, " ").trim()

/**
 * Returns the commands of a block in order. `a && b` is two commands, and a line that ends with a backslash continues.
 */
export const commandsIn = (body: string): ReadonlyArray<string> =>
  body.replaceAll(/\\\n/g, " ").split("\n")
    .flatMap((line) => line.split(" && "))
    .map(oneLine)
    .filter((command) => command !== "" && !command.startsWith("#"))

/** Returns the commands of a document. */
export const commandsOf = (document: string): ReadonlyArray<string> => bodiesOf(document, "sh").flatMap(commandsIn)

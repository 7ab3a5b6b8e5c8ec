import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { assert, describe, it } from "vitest"

/*
 * A comment that cites a document is useless once the document or the heading is gone. So this test looks up each
 * citation of a document, in code and in documents.
 */

const repository = resolve(import.meta.dirname, "..")

const text = (file: string): string => readFileSync(join(repository, file), "utf8")

const filesBelow = (place: string): ReadonlyArray<string> =>
  statSync(join(repository, place)).isFile()
    ? [place]
    : readdirSync(join(repository, place), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name, parentPath }) => join(parentPath, name).slice(repository.length + 1))

const isDocument = (file: string): boolean => file.endsWith(".md")

/** Returns the texts of the headings of a document, without marks. Lines in a block of code are not headings. */
const headingsOf = (document: string): ReadonlyArray<string> =>
  [...document.replaceAll(/^ *```.*?^ *```$/gms, "").matchAll(/^#+ (.*)$/gm)].map(([, words = ""]) =>
    words.replaceAll("`", "").trim()
  )

/** Returns the anchor that programs which show Markdown make for a heading. */
const anchorOf = (heading: string): string =>
  heading.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(" ", "-")

/** Joins the lines of a comment, because a citation may continue on the next line. */
const joined = (source: string): string => source.replaceAll(/\n[ \t]*(?:\*(?!\/)|\/\/|#)?[ \t]*/g, " ")

/**
 * Matches a path to a document, the anchor of a link, and the headings that follow in quotes. A string that is only a
 * path is not a citation.
 */
const citation = /(?<!["\w./-])([\w./-]*\w\.md)\b(#[\w-]*)?`?((?:(?:,| and) \\?"[^"\\\n]{2,80}\\?")*)/g

/** Matches a link to a heading of the same document. */
const within = /\]\((#[\w-]+)\)/g

/**
 * Returns the citations in a text whose target does not exist. Links in documents are relative to the document, all
 * other citations to the root of the repository.
 */
const deadCitations = (file: string, source: string): ReadonlyArray<string> => {
  const here = isDocument(file) ? dirname(file) : "."
  const found = [...joined(source).matchAll(citation)].map(([, path = "", anchor = "", named = ""]) => ({
    path: [join(here, path), path].find((one) => existsSync(join(repository, one))),
    cited: path,
    anchor,
    headings: [...named.matchAll(/"([^"\\]+)\\?"/g)].map(([, heading = ""]) => heading)
  }))
  const own = isDocument(file)
    ? [...source.matchAll(within)].map(([, anchor = ""]) => ({ path: file, cited: file, anchor, headings: [] }))
    : []
  return [...found, ...own].flatMap(({ anchor, cited, headings, path }) => {
    if (path === undefined) return [`${file}: there is no ${cited}`]
    const known = headingsOf(path === file ? source : text(path))
    return [
      ...headings.filter((heading) => !known.includes(heading)).map((heading) =>
        `${file}: ${cited} has no "${heading}"`
      ),
      ...anchor === "" || known.map(anchorOf).includes(anchor.slice(1)) ? [] : [`${file}: ${cited} has no ${anchor}`]
    ]
  })
}

/**
 * Matches a module with its folder, and every path below the folders of code. A path with another ending, such as
 * `.php`, belongs to another repository.
 */
const codePath = /`((?:[\w-]+\/)+[\w.-]+\.ts|(?:src|test|tools)\/[\w/-]+)`/g

/** Returns the paths to code in a document that do not exist. A path may begin below `src` or `test`. */
const deadPaths = (file: string, source: string): ReadonlyArray<string> =>
  [...source.matchAll(codePath)].map(([, path = ""]) => path)
    .filter((path) => !["src", "test", "."].some((root) => existsSync(join(repository, root, path))))
    .map((path) => `${file}: there is no ${path}`)

/**
 * Returns the RFCs that are not cited in the form `RFC 8555 section 7.4`, with which all citations of a section can be
 * found.
 */
const oddRfcs = (source: string): ReadonlyArray<string> =>
  joined(source).match(
    /§ ?\d[\d.]*|\bRFC ?\d+, section [\d.]+|\bRFC\d+ section [\d.]+|\bRFC \d+ (?:sec\.|Section) ?[\d.]+/g
  ) ?? []

const places = [
  "src",
  "test",
  "tools/bench",
  "docs",
  "deploy",
  ".ci",
  ".github",
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "SECURITY.md",
  "config.toml.example"
]

// This file contains dead citations on purpose.
const cited = places.flatMap(filesBelow).filter((file) =>
  file !== "test/citations.test.ts" && /\.(?:ts|md|yml|toml|example|service|conf|cfg|sh)$|\/[^.]*$/.test(file)
)

describe("a citation", () => {
  it("refers to a document, heading and anchor that exist", () => {
    assert.isAbove(cited.filter((file) => text(file).includes(".md")).length, 100)
    assert.deepStrictEqual(cited.flatMap((file) => deadCitations(file, text(file))), [])
  })

  it("refers to a file or folder of the code that exists if it is in a document", () => {
    assert.deepStrictEqual(cited.filter(isDocument).flatMap((file) => deadPaths(file, text(file))), [])
  })

  it("in the lists of words refers to an owner that exists", () => {
    const lists = ["docs/reference/glossary.md", "docs/contribute/words.md"].map(text).join("\n")
    const rows = [...lists.matchAll(/^\| .* \| (`[^|]*`) *\|$/gm)].map(([, owners = ""]) => owners)
    const owners = rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, owner = ""]) => owner))
    assert.isAbove(owners.length, 50)
    assert.deepStrictEqual(
      owners.filter((owner) => !existsSync(join(repository, owner.startsWith("docs/") ? "" : "src", owner))),
      []
    )
  })

  it("of a section of an RFC has one form", () => {
    assert.deepStrictEqual(cited.flatMap((file) => oddRfcs(text(file)).map((odd) => `${file}: ${odd}`)), [])
  })

  it.each([
    ["src/a.ts", "/** As `nowhere.md` has it. */", "src/a.ts: there is no nowhere.md"],
    ["src/a.ts", "// docs/operate/jobs.md, \"Nothing\"", "src/a.ts: docs/operate/jobs.md has no \"Nothing\""],
    [
      "src/a.ts",
      "/*\n * (docs/operate/jobs.md, \"States\" and \"By\n * foot\") */",
      "src/a.ts: docs/operate/jobs.md has no \"By foot\""
    ],
    ["src/a.ts", "// jobs.md", "src/a.ts: there is no jobs.md"],
    ["docs/operate/a.md", "See [there](jobs.md#nothing).", "docs/operate/a.md: jobs.md has no #nothing"],
    ["docs/a.md", "# A\n\nSee [below](#b).", "docs/a.md: docs/a.md has no #b"]
  ])("without a target is reported in %s: %s", (file, source, fault) => {
    assert.deepStrictEqual(deadCitations(file, source), [fault])
  })

  it.each([
    ["src/a.ts", "/*\n * (docs/operate/jobs.md, \"By\n * hand\") */"],
    ["src/a.ts", "// `docs/reference/protocol.md`, \"CSR policy\" and \"Bad keys\"; then \"other words\""],
    ["docs/contribute/a.md", "# A\n\n## The b-c, d\n\nSee [there](decisions/leases.md) and [below](#the-b-c-d)."]
  ])("with a target is accepted in %s: %s", (file, source) => {
    assert.deepStrictEqual(deadCitations(file, source), [])
  })

  it("of code without a target is reported", () => {
    const living = "`domain/Order.ts`, `test/support`, `tools/bench/main.ts`, `src/other/Program.php`"
    assert.deepStrictEqual(deadPaths("docs/a.md", `${living}, \`test/domain/Or.test.ts\`, \`src/nowhere\``), [
      "docs/a.md: there is no test/domain/Or.test.ts",
      "docs/a.md: there is no src/nowhere"
    ])
  })

  it("of an RFC in another form is reported", () => {
    assert.deepStrictEqual(oddRfcs("RFC 8555 §7.4, RFC 8555, section 7.4, RFC8555 section 7.4"), [
      "§7.4",
      "RFC 8555, section 7.4",
      "RFC8555 section 7.4"
    ])
    assert.deepStrictEqual(oddRfcs("RFC 8555 section 7.4, and RFC 5280 as a whole"), [])
  })
})

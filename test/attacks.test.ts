import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"
import { assert, describe, it } from "vitest"

/* Compares docs/contribute/attacks.md with the tests that it names, so that no test is renamed or removed unnoticed. */

const page = readFileSync(join(import.meta.dirname, "../docs/contribute/attacks.md"), "utf8")

/** The file and the names of each `file`: "name", "name" in the last column of the tables. */
const named = page.split("\n").flatMap((line) => {
  const cell = line.startsWith("|") ? line.split("|").at(-2) ?? "" : ""
  return [...cell.matchAll(/`([^`]+)`: ((?:"[^"]+"(?:, )?)+)/g)].map(([, file = "", names = ""]) => ({
    file: file.startsWith("support/") ? `${file}.ts` : `${file}.test.ts`,
    names: [...names.matchAll(/"([^"]+)"/g)].map(([, name = ""]) => name)
  }))
})

/** Returns everything that can name a test in a file: texts, the parts of templates, and names of members. */
const textsOf = (path: string): ReadonlyArray<string> => {
  const texts: Array<string> = []
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node) || ts.isIdentifier(node)) texts.push(node.text)
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest))
  return texts
}

describe("docs/contribute/attacks.md", () => {
  it("names a test for every attack", () => {
    const rows = page.split("\n").filter((line) => line.startsWith("| ") && !/^\| (?:Attack|-+) /.test(line))
    assert.isAbove(rows.length, 90)
    for (const row of rows) assert.match(row.split("|").at(-2) ?? "", /^ `[\w/]+`: "/, row)
  })

  for (const file of new Set(named.map((one) => one.file))) {
    it(`names tests that are in ${file}`, () => {
      const path = join(import.meta.dirname, file)
      assert.isTrue(existsSync(path), file)
      const texts = textsOf(path)
      const absent = named.filter((one) => one.file === file).flatMap(({ names }) => names)
        .filter((name) => !texts.some((text) => text.includes(name)))
      assert.deepStrictEqual(absent, [])
    })
  }
})

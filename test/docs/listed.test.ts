import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { guideLines } from "../interop/guides/Recipes.ts"
import { packageLines } from "../packages/Lines.ts"
import { lines, linesOf } from "../support/DocumentLines.ts"
import { isBenchmark, isFaultRun, isSimulation, ofTheGate } from "../support/DocumentPrograms.ts"
import { blocks, commandsOf, documents, repository, text } from "../support/Documents.ts"

/*
 * Every command of the documents is run by a file of this folder, by the cases of `test/packages`, by the guides of
 * `test/interop` or by `.ci/run`.
 */

describe("the documents", () => {
  // `operators.test.ts` runs the commands of the other documents.
  const all = documents.filter((document) => !["docs/operate/operators.md", "docs/reference/api.md"].includes(document))
    .flatMap((document) => commandsOf(document).map((command) => ({ document, command })))

  it("write commands in blocks of the language sh, where this test finds them", () => {
    for (const { body, document, language } of blocks) {
      assert.include(["sh", "text", "toml", "json", "yaml", "diff", "jinja"], language, `${document}:\n${body}`)
      if (language === "text") assert.notMatch(body, /^\s*[$#] /m, document)
    }
  })

  it.each(all.filter(({ command }) => !isBenchmark(command) && !isFaultRun(command) && !isSimulation(command)))(
    "have in $document a command that some test runs: $command",
    ({ command }) => {
      assert.include(
        [...Object.values(lines), ...ofTheGate, ...packageLines, ...guideLines] as ReadonlyArray<string>,
        command
      )
    }
  )

  it("contain every command that a test runs as documented", () => {
    const written = all.map(({ command }) => command)
    for (const command of [...Object.values(lines), ...ofTheGate, ...packageLines]) assert.include(written, command)
  })

  it.each(Object.keys(linesOf))("have lines that %s.test.ts must run", (home) => {
    assert.match(text(`test/docs/${home}.test.ts`), new RegExp(`^hasRunLinesOf\\("${home}"\\)$`, "m"))
  })

  it.each(ofTheGate)("name %s, which .ci/run runs", (command) => {
    assert.match(
      text(".ci/run"),
      new RegExp(`(?:^|then )(?:step|steadied) ${command.replaceAll(".", "\\.")}(?:$| \\|\\||; fi$)`, "m")
    )
  })

  it("say correctly that .ci/run runs the full test suite", () => {
    assert.match(text(".ci/run"), /^export ACME_TEST_FULL=true\nsteadied npm test$/m)
  })

  it("link to files that exist", () => {
    for (const document of documents) {
      for (const [, target = ""] of text(document).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)) {
        if (!target.includes("://")) {
          assert.isTrue(existsSync(join(repository, dirname(document), target)), `${document}: ${target}`)
        }
      }
    }
  })
})

import { assert, describe, it } from "vitest"
import { auditEvents } from "../../src/domain/Audit.ts"
import { isAcmeError } from "../../src/domain/Problem.ts"
import { fields } from "../../src/domain/words/EventField.ts"
import { events } from "../../src/domain/words/Log.ts"
import { committed } from "../support/Committed.ts"
import { catalogues } from "./Catalogues.ts"
import { diagrams } from "./Diagrams.ts"
import { renderEvents } from "./Events.ts"
import { replaced } from "./Markdown.ts"
import { renderProblems } from "./Problems.ts"

/** Returns the first cells of all rows, without duplicates. */
const namesIn = (text: string): ReadonlyArray<string> => [
  ...new Set([...text.matchAll(/^\| (\w+) \|/gm)].map(([, name = ""]) => name))
]

describe("a catalogue", () => {
  it.each(Object.entries(catalogues))(
    "of %s agrees with the code",
    (file, render) => {
      assert.strictEqual(committed(file), replaced(committed(file), render()))
    }
  )

  it.each(Object.entries(diagrams))("of pictures has %s as its text or the code describes it", async (file, draw) => {
    assert.strictEqual(committed(file), await draw())
  })

  it("of problems has every failure", () => {
    const [problems = ""] = renderProblems().split("\n## Causes")
    const tags = namesIn(problems).filter((name) => name !== "Failure")
    assert.isAbove(tags.length, 50)
    for (const tag of tags) assert.isTrue(isAcmeError({ _tag: tag }), tag)
    const declared = ["Problem", "UpstreamProblems"].flatMap((file) => {
      const table = /^(?:export )?const \w+ = \{$(.*?)^\} as const/ms.exec(committed(`src/domain/${file}.ts`))?.[1] ??
        ""
      return [...table.matchAll(/^ {2}(\w+): \{/gm)].map(([, tag]) => tag)
    })
    assert.sameMembers(declared, tags)
  })

  it("of log records has every event, every field and every event of the audit trail", () => {
    const [records = "", trail = ""] = renderEvents().split("\n### Events of the audit trail")
    const headings = [...records.matchAll(/^#### (\w+)$/gm)].map(([, name]) => name)
    assert.sameMembers(headings, Object.keys(events))
    assert.sameMembers(namesIn(records).filter((name) => name !== "Field"), Object.keys(fields))
    assert.sameMembers(namesIn(trail).filter((name) => name !== "Event"), [...auditEvents])
  })

  it("contains no word that stands for a missing value", () => {
    assert.notMatch(renderProblems(), /undefined|NaN|\[object/)
  })

  it("is not written into a document without marks", () => {
    assert.throws(() => replaced("no marks", "text"), "dprint-ignore-start")
  })
})

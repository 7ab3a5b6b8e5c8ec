import { assert, describe, it } from "vitest"
import { nouns } from "../../../src/surfaces/operator/Nouns.ts"

describe("a command whose output is shown only once", () => {
  it("says what has become of it if the output is lost", () => {
    const commands = nouns.flatMap(({ acts }) => acts).flatMap(({ cli, does }) =>
      cli === undefined ? [] : [{ cli, does }]
    )
    const shownOnce = commands.filter(({ cli, does }) => /(?:printed|shown) (?:only )?once/.test(cli.help ?? does))
    const covered = commands.filter(({ cli }) => cli.ifLost !== undefined)
    assert.deepStrictEqual(covered.map(({ cli }) => cli.command), shownOnce.map(({ cli }) => cli.command))
    assert.isNotEmpty(covered)
  })
})

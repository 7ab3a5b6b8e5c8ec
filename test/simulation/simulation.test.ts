import { rmSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { isFull } from "../support/Full.ts"
import { readOptions } from "./Options.ts"
import { guardsOf, plantedBugs } from "./Planted.ts"
import { makeCa, simulate } from "./Simulation.ts"

describe("the simulation", () => {
  let ca = ""
  let ninth: Awaited<ReturnType<typeof simulate>>
  beforeAll(async () => {
    ca = await makeCa()
    ninth = await simulate("9", ca)
  })
  afterAll(() => rmSync(ca, { recursive: true, force: true }))

  it.each(Array.from({ length: isFull ? 12 : 2 }, (_, at) => String(at + 1)))(
    "finds no violation with seed %s",
    async (seed) => {
      const { acknowledged, violations } = await simulate(seed, ca)
      expect(violations).toEqual([])
      expect(acknowledged).toBeGreaterThan(0)
    }
  )

  it("has the same events for the same seed, and other events for another seed", async () => {
    const lines: Array<string> = []
    const first = await simulate("5", ca)
    const second = await simulate("5", ca, (line) => void lines.push(line))
    expect(second).toEqual(first)
    expect(ninth.digest).not.toBe(first.digest)
    expect(lines.length).toBeGreaterThan(100)
  })

  it("has the same events with another CA, because no decision depends on a signature", async () => {
    const another = await makeCa()
    try {
      expect(await simulate("9", another)).toEqual(ninth)
    } finally {
      rmSync(another, { recursive: true, force: true })
    }
  })

  it.each(plantedBugs)("finds in the source the guard to remove: $name", (bug) => {
    expect(bug.without).not.toBe(bug.guard)
    expect(guardsOf(bug)).toBe(1)
  })
})

describe("the options of npm run simulate", () => {
  it("have defaults", () => {
    expect(readOptions([])).toMatchObject({ from: 1, seeds: 100, trace: false, planted: false })
  })

  it("accept one seed", () => {
    expect(readOptions(["--seed", "17", "--trace"])).toMatchObject({ from: 17, seeds: 1, trace: true })
  })

  it.each([
    [["--seeds", "0"], "--seeds wants a whole number of at least 1, not \"0\""],
    [["--seed"], "--seed wants a whole number of at least 0, not \"\""],
    [["--from", "-1"], "--from wants a whole number of at least 0, not \"-1\""],
    [["--sedes", "3"], "--sedes is no option: npm run simulate"]
  ])("are refused if they are %j", (words, sentence) => {
    expect(() => readOptions(words)).toThrow(sentence)
  })
})

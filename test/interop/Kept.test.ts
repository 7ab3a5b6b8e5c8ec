import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { freshDirectory } from "../support/Databases.ts"
import { kept, keptIn } from "./Kept.ts"

const filled = (text: string) => async (folder: string) => writeFileSync(join(folder, "program"), text)

const rejection = (promise: Promise<unknown>): Promise<unknown> => promise.then(() => undefined, (error) => error)

describe("programs that are kept between runs", () => {
  it("are made once for each set of inputs", async () => {
    const root = join(freshDirectory(), "below")
    const first = await kept("client", ["1"], filled("one"), root)
    assert.strictEqual(await kept("client", ["1"], filled("again"), root), first)
    assert.strictEqual(readFileSync(join(first, "program"), "utf8"), "one")
    const second = await kept("client", ["2"], filled("two"), root)
    assert.notStrictEqual(second, first)
    assert.strictEqual(readFileSync(join(second, "program"), "utf8"), "two")
  })

  it("never include a program that was made only in part", async () => {
    const root = freshDirectory()
    const failed = await rejection(kept("client", ["1"], async (folder) => {
      await filled("half")(folder)
      throw new Error("no compiler")
    }, root))
    assert.match(String(failed), /no compiler/)
    assert.deepStrictEqual(readdirSync(root), [])
  })

  it("are those of the run that finishes first if two runs make the same program", async () => {
    const root = freshDirectory()
    const folder = await kept("client", ["1"], async (folder) => {
      await kept("client", ["1"], filled("other"), root)
      await filled("own")(folder)
    }, root)
    assert.strictEqual(readFileSync(join(folder, "program"), "utf8"), "other")
    assert.strictEqual(readdirSync(root).length, 1)
    assert.isTrue(existsSync(folder))
  })

  it("are in the folder that the environment names, or below the user's cache", () => {
    assert.strictEqual(keptIn({ ACME_TEST_KEPT: "/there", XDG_CACHE_HOME: "/cache", HOME: "/home/x" }), "/there")
    assert.strictEqual(keptIn({ XDG_CACHE_HOME: "/cache", HOME: "/home/x" }), "/cache/acme-svc-clients")
    assert.strictEqual(keptIn({ HOME: "/home/x" }), "/home/x/.cache/acme-svc-clients")
  })
})

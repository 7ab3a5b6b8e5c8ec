import { spawnSync } from "node:child_process"
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { assert, beforeEach, describe, it } from "vitest"
import { builtServer, freshDirectory } from "../support/Databases.ts"

const loading = pathToFileURL(join(import.meta.dirname, "../../src/app/Bundle.ts"))

describe("a bundle", () => {
  let directory = ""
  beforeEach(() => {
    directory = freshDirectory()
  })

  const file = () => join(directory, "program.cjs")
  const folder = () => join(directory, "compiled")
  const stored = () => readdirSync(folder()).map((name) => join(folder(), name))
  const valueOf = (value: number) => `exports.value = () => ${value}`
  /**
   * Writes a bundle. Another process loads it, calls its function and stores the code. In this process, V8 would find the
   * code of earlier tests in its memory.
   */
  const used = (text: string): unknown => {
    writeFileSync(file(), text)
    const { status, stderr, stdout } = spawnSync(process.execPath, [
      "--input-type=module",
      "--eval",
      `import { loadBundle } from ${JSON.stringify(loading.href)}
       const { exports, store } = loadBundle(...${JSON.stringify([file(), folder()])})
       process.stdout.write(JSON.stringify(await exports.value()))
       store()`
    ], { encoding: "utf8" })
    assert.strictEqual(status, 0, stderr)
    return JSON.parse(stdout)
  }
  const only = (): string => {
    const files = stored()
    assert.strictEqual(files.length, 1)
    return files[0] ?? ""
  }

  it("is loaded as CommonJS, which can require from its own place", () => {
    writeFileSync(join(directory, "other.cjs"), "module.exports = 1")
    writeFileSync(join(directory, "late.mjs"), "export default 2")
    const value = used(
      `exports.value = async () => [require("./other.cjs"), require("./late.mjs").default, __filename]`
    )
    assert.deepStrictEqual(value, [1, 2, file()])
  })

  it("contains no import() when it is built, because a bundle cannot import", async () => {
    await builtServer()
    const text = readFileSync(join(import.meta.dirname, "../../dist/program.cjs"), "utf8")
    assert.deepStrictEqual(text.match(/(?<![\w.$])import\(.{0,80}/g) ?? [], [])
  })

  it("is compiled once, and its code is stored in one file that is not written again", () => {
    assert.strictEqual(used(valueOf(1)), 1)
    const before = readFileSync(only())
    assert.strictEqual(used(valueOf(1)), 1)
    assert.deepStrictEqual(readFileSync(only()), before)
  })

  it("runs by the stored code", () => {
    used(valueOf(1))
    const code = only()
    used(valueOf(2))
    const other = stored().find((name) => name !== code) ?? ""
    // V8 compares only the lengths of the texts.
    copyFileSync(code, other)
    assert.strictEqual(used(valueOf(2)), 1)
  })

  it("is compiled again when its text is another one of the same length", () => {
    assert.strictEqual(used(valueOf(1)), 1)
    assert.strictEqual(used(valueOf(2)), 2)
    assert.strictEqual(stored().length, 2)
  })

  it("is compiled again, and stored again, if the stored code is damaged, cut off or empty", () => {
    used(valueOf(1))
    const whole = readFileSync(only())
    const damaged = Uint8Array.from(whole)
    damaged[whole.length - 1] = ~(damaged[whole.length - 1] ?? 0)
    for (const content of [damaged, whole.subarray(0, -1), whole.subarray(0, 4), new Uint8Array()]) {
      writeFileSync(only(), content)
      assert.strictEqual(used(valueOf(1)), 1)
      assert.notDeepEqual(readFileSync(only()), Buffer.from(content))
    }
  })

  it("is loaded without stored code if nothing can be stored", () => {
    writeFileSync(folder(), "not a folder")
    assert.strictEqual(used(valueOf(1)), 1)
    assert.deepStrictEqual(readdirSync(directory).sort(), ["compiled", "program.cjs"])
    assert.strictEqual(readFileSync(folder(), "utf8"), "not a folder")
  })
})

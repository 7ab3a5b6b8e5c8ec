import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert } from "vitest"
import {
  FileUnusable,
  readTextFile,
  removeLeftovers,
  replaceFile,
  writeNewFile,
  writeNewFiles
} from "../../../src/engine/host/KeyFile.ts"

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "keyfile-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)
const modeOf = (path: string): number => statSync(path).mode & 0o777
const reasonOf = <A>(self: Effect.Effect<A, FileUnusable>) => Effect.map(Effect.flip(self), ({ reason }) => reason)
const file = (path: string, content: string | Uint8Array, mode = 0o600, suffix = "0a1b2c") => ({
  path,
  content,
  mode,
  suffix
})

describe("writeNewFile", () => {
  it.effect("writes the content and the mode, whatever the umask is, and leaves no other file", () =>
    Effect.gen(function*() {
      const at = yield* directory
      const before = process.umask(0o077)
      yield* Effect.ensuring(
        Effect.gen(function*() {
          yield* writeNewFile(file(join(at, "ca.key"), "secret\n"))
          yield* writeNewFile(file(join(at, "ca.pem"), Buffer.from("public\n"), 0o644))
        }),
        Effect.sync(() => process.umask(before))
      )
      assert.deepStrictEqual(readdirSync(at), ["ca.key", "ca.pem"])
      assert.deepStrictEqual([modeOf(join(at, "ca.key")), modeOf(join(at, "ca.pem"))], [0o600, 0o644])
      assert.strictEqual(readFileSync(join(at, "ca.key"), "utf8"), "secret\n")
      assert.strictEqual(readFileSync(join(at, "ca.pem"), "utf8"), "public\n")
      assert.strictEqual(statSync(join(at, "ca.key")).nlink, 1)
    }))

  it.effect("never overwrites a file, a directory, a link or a dangling link", () =>
    Effect.gen(function*() {
      const at = yield* directory
      const path = join(at, "ca.key")
      const elsewhere = join(at, "elsewhere")
      writeFileSync(path, "old")
      assert.strictEqual(yield* reasonOf(writeNewFile(file(path, "new"))), "exists")
      assert.strictEqual(readFileSync(path, "utf8"), "old")
      mkdirSync(join(at, "directory"))
      assert.strictEqual(yield* reasonOf(writeNewFile(file(join(at, "directory"), "new"))), "exists")
      symlinkSync(elsewhere, join(at, "link"))
      assert.strictEqual(yield* reasonOf(writeNewFile(file(join(at, "link"), "new"))), "exists")
      assert.isFalse(existsSync(elsewhere))
      writeFileSync(elsewhere, "old")
      assert.strictEqual(yield* reasonOf(writeNewFile(file(join(at, "link"), "new"))), "exists")
      assert.strictEqual(readFileSync(elsewhere, "utf8"), "old")
      assert.deepStrictEqual(readdirSync(at), ["ca.key", "directory", "elsewhere", "link"])
    }))

  it.effect("neither follows nor removes a file that already has the temporary name", () =>
    Effect.gen(function*() {
      const at = yield* directory
      const target = join(at, "target")
      symlinkSync(target, join(at, ".ca.key.0a1b2c"))
      assert.strictEqual(yield* reasonOf(writeNewFile(file(join(at, "ca.key"), "new"))), "exists")
      assert.deepStrictEqual(readdirSync(at), [".ca.key.0a1b2c"])
      assert.strictEqual(readlinkSync(join(at, ".ca.key.0a1b2c")), target)
    }))

  it.effect("names a missing directory in its failure", () =>
    Effect.gen(function*() {
      const at = yield* directory
      const failed = yield* Effect.flip(writeNewFile(file(join(at, "none", "ca.key"), "x")))
      assert.strictEqual(failed.reason, "absent")
      assert.include(failed.message, "none")
      assert.notInclude(failed.message, "undefined")
    }))

  it.effect("lets exactly one of many writers succeed, with its whole content", () =>
    Effect.gen(function*() {
      const at = yield* directory
      const path = join(at, "ca.key")
      const results = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, i) => i),
        (i) => Effect.result(writeNewFile(file(path, `${i}`.repeat(5000), 0o600, `s${i}`))),
        { concurrency: "unbounded" }
      )
      const won = results.flatMap((result, i) => result._tag === "Success" ? [i] : [])
      assert.strictEqual(won.length, 1)
      assert.strictEqual(readFileSync(path, "utf8"), `${won[0]}`.repeat(5000))
      assert.deepStrictEqual(readdirSync(at), ["ca.key"])
    }))
})

describe("writeNewFiles", () => {
  it.effect("writes all files in order, or none of them", () =>
    Effect.gen(function*() {
      const at = yield* directory
      const [key, certificate] = [join(at, "ca.key"), join(at, "ca.pem")]
      writeFileSync(certificate, "theirs")
      const pair = [file(key, "k"), file(certificate, "c", 0o644)]
      assert.strictEqual(yield* reasonOf(writeNewFiles(pair)), "exists")
      assert.deepStrictEqual(readdirSync(at), ["ca.pem"])
      assert.strictEqual(readFileSync(certificate, "utf8"), "theirs")
      rmSync(certificate)
      yield* writeNewFiles(pair)
      assert.deepStrictEqual(readdirSync(at), ["ca.key", "ca.pem"])
    }))

  it.effect("never mixes the files of two writers", () =>
    Effect.gen(function*() {
      const at = yield* directory
      const pair = (i: number) => [
        file(join(at, "ca.key"), `k${i}`, 0o600, `s${i}`),
        file(join(at, "ca.pem"), `c${i}`, 0o644, `s${i}`)
      ]
      yield* Effect.forEach([0, 1, 2, 3, 4, 5, 6, 7], (i) => Effect.result(writeNewFiles(pair(i))), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(readdirSync(at), ["ca.key", "ca.pem"])
      const [key, certificate] = [readFileSync(join(at, "ca.key"), "utf8"), readFileSync(join(at, "ca.pem"), "utf8")]
      assert.strictEqual(key.slice(1), certificate.slice(1))
    }))
})

describe("a file that a killed process left behind", () => {
  it.effect("is removed by the next write and at startup, unless it may be in use or is not of this service", () =>
    Effect.gen(function*() {
      const at = yield* directory
      const path = join(at, "ca.key")
      yield* TestClock.setTime(Date.now())
      const token = "x".repeat(43)
      const left = (name: string, ageSeconds: number) => {
        writeFileSync(join(at, name), "half a key")
        const then = Date.now() / 1000 - ageSeconds
        utimesSync(join(at, name), then, then)
      }
      const others = [`.ca.key.${"y".repeat(43)}`, ".ca.key.bak", `.ca.pem.${token}`, `.ca.key.${token}.old`]
      left(others[0] ?? "", 30)
      for (const name of others.slice(1)) left(name, 3600)
      const [write, replace, start] = [
        writeNewFile(file(path, "new")),
        replaceFile(file(path, "newer")),
        removeLeftovers(path)
      ]
      for (const clean of [write, replace, start]) {
        left(`.ca.key.${token}`, 61)
        yield* clean
        assert.sameMembers(readdirSync(at), [...others, "ca.key"])
      }
    }))
})

describe("a failure to use a file", () => {
  it("is described in words that name what the host lacks", () => {
    const says = (code: string, reason: FileUnusable["reason"] = "failed") =>
      new FileUnusable({ path: "ca.crl", reason, cause: Object.assign(new Error(code), { code }) }).message
    assert.strictEqual(says("ENOSPC"), "ca.crl: no space is left on its file system (ENOSPC)")
    assert.strictEqual(says("EMFILE"), "ca.crl: this process has too many files open (EMFILE)")
    assert.strictEqual(says("EROFS", "denied"), "ca.crl: its file system is read-only (EROFS)")
    assert.strictEqual(says("ESTALE"), "ca.crl: input or output failed (ESTALE)")
    assert.strictEqual(says("EACCES", "denied"), "ca.crl: permission denied")
  })
})

describe("replaceFile", () => {
  it.effect("replaces a file or a link, but never the target of the link", () =>
    Effect.gen(function*() {
      const at = yield* directory
      const path = join(at, "ca.crl")
      yield* replaceFile(file(path, "one", 0o644))
      yield* replaceFile(file(path, "two", 0o640))
      assert.strictEqual(readFileSync(path, "utf8"), "two")
      assert.strictEqual(modeOf(path), 0o640)
      symlinkSync(path, join(at, "link"))
      yield* replaceFile(file(join(at, "link"), "three", 0o644))
      assert.isFalse(lstatSync(join(at, "link")).isSymbolicLink())
      assert.strictEqual(readFileSync(path, "utf8"), "two")
      mkdirSync(join(at, "directory"))
      assert.strictEqual(yield* reasonOf(replaceFile(file(join(at, "directory"), "x"))), "not_a_file")
      assert.deepStrictEqual(readdirSync(at), ["ca.crl", "directory", "link"])
    }))
})

describe("readTextFile", () => {
  it.effect("follows links, and says whether others may use the file", () =>
    Effect.gen(function*() {
      const at = yield* directory
      const path = join(at, "ca.key")
      yield* writeNewFile(file(path, "schlüssel"))
      symlinkSync(path, join(at, "link"))
      assert.deepStrictEqual(yield* readTextFile(join(at, "link")), { text: "schlüssel", permissive: false })
      for (
        const [mode, permissive] of [[0o640, true], [0o604, true], [0o620, true], [0o611, true], [
          0o400,
          false
        ]] as const
      ) {
        chmodSync(path, mode)
        assert.strictEqual((yield* readTextFile(path)).permissive, permissive, mode.toString(8))
      }
    }))

  it.effect("says why a file cannot be read", () =>
    Effect.gen(function*() {
      const at = yield* directory
      const path = (name: string) => join(at, name)
      writeFileSync(path("binary"), Buffer.from([0xff, 0xfe]))
      writeFileSync(path("large"), Buffer.alloc(1024 * 1024 + 1, 0x20))
      writeFileSync(path("full"), Buffer.alloc(1024 * 1024, 0x20))
      symlinkSync(path("loop"), path("loop"))
      assert.strictEqual(yield* reasonOf(readTextFile(path("none"))), "absent")
      assert.strictEqual(yield* reasonOf(readTextFile(at)), "not_a_file")
      assert.strictEqual(yield* reasonOf(readTextFile(path("binary"))), "not_text")
      assert.strictEqual(yield* reasonOf(readTextFile(path("large"))), "too_large")
      assert.strictEqual(yield* reasonOf(readTextFile(path("loop"))), "not_a_file")
      assert.strictEqual((yield* readTextFile(path("full"))).text.length, 1024 * 1024)
    }))
})

import { Effect, Result } from "effect"
import { TestClock } from "effect/testing"
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import type { Token, TokenLimits } from "../../../src/engine/token/Token.ts"
import { makeToken } from "../../../src/engine/token/Token.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { gateComesBackForTokens, isInstalled } from "../../support/Installed.ts"
import { useTests } from "../../support/UseTests.ts"

const canCompile = isInstalled("gcc")
const limits: TokenLimits = { openMillis: 60_000, signMillis: 60_000 }

/** A token of the module `fakeModule.c`, which does what it is told. */
const fake = (more: Partial<TokenLimits> = {}) => {
  const directory = freshDirectory()
  const [module, control, journal, pin] = ["module.so", "control", "journal", "pin"].map((name) =>
    join(directory, name)
  )
  const compiled = spawnSync("gcc", [
    "-shared",
    "-fPIC",
    "-nostdlib",
    "-w",
    `-DCONTROL="${control}"`,
    `-DJOURNAL="${journal}"`,
    "-o",
    module ?? "",
    join(import.meta.dirname, "fakeModule.c")
  ], { encoding: "utf8" })
  assert.strictEqual(compiled.status, 0, compiled.stderr)
  writeFileSync(journal ?? "", "")
  const settings = {
    module_path: module ?? "",
    token_label: "t",
    slot_id: -1,
    key_label: "key",
    key_id: "",
    pin_file: pin ?? ""
  }
  const tell = (text: string) => writeFileSync(control ?? "", text)
  const givePin = (text: string) => writeFileSync(settings.pin_file, text, { mode: 0o600 })
  tell("oo0p")
  givePin("1234\n")
  return {
    settings,
    token: makeToken(settings, () => undefined, { ...limits, ...more }),
    /** Says what the module does in C_Sign and C_Login, which flags the token has, and whether it is there. */
    tell,
    givePin,
    count: (call: string) => readFileSync(journal ?? "", "utf8").split(call).length - 1
  }
}

const data = Buffer.alloc(32, 7)
const sign = ({ sign }: Token) => sign("CKM_ECDSA", data)
const signMany = (token: Token, count: number) =>
  Effect.all(Array.from({ length: count }, () => Effect.result(sign(token))), { concurrency: count })
const failureOf = (token: Token) => Effect.map(Effect.flip(sign(token)), ({ detail }) => detail)

const { test } = useTests({})

const tokenTest = (name: string, body: () => Effect.Effect<void, unknown>) =>
  test(name, () => canCompile ? body() : Effect.sync(gateComesBackForTokens))

describe("a token", () => {
  tokenTest(
    "signs a hundred times at once although it is slow, and operations of a session never mix",
    () =>
      Effect.gen(function*() {
        const { count, tell, token } = fake()
        tell("so0p")
        const results = yield* signMany(token, 100)
        for (const result of results) {
          assert.deepStrictEqual(Buffer.from(Result.getOrThrow(result)), Buffer.concat([data, data]))
        }
        assert.strictEqual(count("S"), 100)
        assert.deepStrictEqual([count("i"), count("l")], [1, 1])
        assert.isAtMost(count("s"), 4)
      })
  )

  tokenTest(
    "that hangs in C_Sign is given up, and the next process signs again after a wait",
    () =>
      Effect.gen(function*() {
        const { count, tell, token } = fake({ signMillis: 300 })
        yield* token.open
        tell("ho0p")
        const results = yield* signMany(token, 20)
        assert.isTrue(results.every(Result.isFailure))
        assert.include(yield* failureOf(token), "did not answer within 0.3 s")
        tell("oo0p")
        assert.include(yield* failureOf(token), "did not answer within 0.3 s")
        assert.include((yield* token.trouble) ?? "", "did not answer")
        assert.strictEqual(count("i"), 1)
        yield* TestClock.adjust("1 second")
        assert.isUndefined(yield* token.trouble)
      })
  )

  tokenTest(
    "that crashes in C_Sign fails all signatures under way, and signs again after a wait",
    () =>
      Effect.gen(function*() {
        const { count, tell, token } = fake()
        yield* token.open
        tell("co0p")
        const results = yield* signMany(token, 20)
        assert.isTrue(results.every(Result.isFailure))
        assert.match(yield* failureOf(token), /ended with SIG/)
        tell("oo0p")
        yield* TestClock.adjust("1 second")
        assert.isTrue((yield* signMany(token, 20)).every(Result.isSuccess))
        assert.strictEqual(count("i"), 2)
      })
  )

  tokenTest("that fails again and again is tried with growing waits", () =>
    Effect.gen(function*() {
      const { count, tell, token } = fake()
      tell("ro0p")
      for (const [index, seconds] of [1, 2, 4, 8, 16, 32, 60, 60].entries()) {
        assert.include(yield* failureOf(token), "C_Sign failed with CKR_TOKEN_NOT_PRESENT")
        assert.strictEqual(count("i"), index + 1)
        yield* TestClock.adjust(`${seconds * 1000 - 1} millis`)
        yield* failureOf(token)
        assert.strictEqual(count("i"), index + 1)
        yield* TestClock.adjust("1 millis")
      }
    }))

  tokenTest("that loses its session is logged in again", () =>
    Effect.gen(function*() {
      const { count, tell, token } = fake()
      yield* sign(token)
      tell("lo0p")
      assert.include(yield* failureOf(token), "CKR_SESSION_HANDLE_INVALID")
      tell("oo0p")
      yield* TestClock.adjust("1 second")
      yield* sign(token)
      assert.deepStrictEqual([count("i"), count("l")], [2, 2])
    }))

  tokenTest("that is taken away is missed, and signs when it is back", () =>
    Effect.gen(function*() {
      const { tell, token } = fake()
      tell("oo0a")
      assert.strictEqual(yield* failureOf(token), "no token has the label t")
      assert.strictEqual(yield* token.trouble, "no token has the label t")
      tell("oo0p")
      yield* TestClock.adjust("1 second")
      assert.isUndefined(yield* token.trouble)
      yield* sign(token)
    }))

  tokenTest("never gets a wrong PIN twice, until its file is written again", () =>
    Effect.gen(function*() {
      for (const [how, name] of [["i", "CKR_PIN_INCORRECT"], ["l", "CKR_PIN_LOCKED"]]) {
        const { count, givePin, tell, token } = fake()
        tell(`o${how}0p`)
        for (let i = 0; i < 5; i++) {
          assert.include(yield* failureOf(token), `C_Login failed with ${name}`)
          assert.include((yield* token.trouble) ?? "", "is not tried again until")
          yield* TestClock.adjust("1 hour")
        }
        yield* signMany(token, 20)
        assert.strictEqual(count("l"), 1)
        tell("oo0p")
        assert.isDefined(yield* token.trouble)
        givePin("another")
        assert.isUndefined(yield* token.trouble)
        yield* sign(token)
        assert.strictEqual(count("l"), 2)
      }
    }))

  tokenTest("gets no PIN at all if it is locked, or if one more wrong PIN would lock it", () =>
    Effect.gen(function*() {
      for (const [flags, said] of [["f", "one more wrong PIN"], ["l", "the PIN of the token is locked"]]) {
        const { count, tell, token } = fake()
        tell(`oo${flags}p`)
        assert.include(yield* failureOf(token), said ?? "")
        assert.strictEqual(count("l"), 0)
      }
    }))

  tokenTest(
    "is not signed with if its key is refused, and only the configuration can mend that",
    () =>
      Effect.gen(function*() {
        const { settings } = fake()
        const token = makeToken(settings, (key) => `refused ${key.kind}`, limits)
        assert.deepInclude(yield* Effect.flip(token.open), { detail: "refused ec", isFault: true })
      })
  )

  tokenTest(
    "cannot be used without its PIN, its module, or with a file that is no module",
    () =>
      Effect.gen(function*() {
        const { settings } = fake()
        const said = (more: object) => failureOf(makeToken({ ...settings, ...more }, () => undefined, limits))
        assert.include(yield* said({ pin_file: "/absent" }), "the PIN file /absent cannot be used: no such file")
        for (const module_path of ["/absent.so", settings.pin_file]) {
          const detail = yield* said({ module_path })
          assert.include(detail, "the module cannot be used")
          assert.notInclude(detail, "1234")
        }
      })
  )

  tokenTest(
    "is left by its process when the service is killed, even in the middle of a call that hangs",
    () =>
      Effect.gen(function*() {
        const { settings, tell } = fake()
        tell("ho0p")
        const source = new URL("../../../src/engine/token/Token.ts", import.meta.url).href
        const code = `
        import { Effect } from "effect"
        import { makeToken } from ${JSON.stringify(source)}
        const token = makeToken(${JSON.stringify(settings)}, () => undefined)
        await Effect.runPromise(token.open)
        Effect.runPromise(Effect.ignore(token.sign("CKM_ECDSA", Buffer.alloc(32))))
        process.stdout.write("signing")`
        const parent = spawn(process.execPath, ["--input-type=module", "-e", code], {
          cwd: join(import.meta.dirname, "../../.."),
          stdio: ["ignore", "pipe", "pipe"]
        })
        yield* Effect.promise(() => once(parent.stdout, "data"))
        parent.kill("SIGKILL")
        // The process of the module has the same standard error, which closes when both have ended.
        yield* Effect.promise(() => once(parent, "close"))
      })
  )
})

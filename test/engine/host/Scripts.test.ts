import { it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { assert, describe } from "vitest"
import type { ScriptRequest } from "../../../src/engine/host/Scripts.ts"
import { longestVariable, Scripts } from "../../../src/engine/host/Scripts.ts"
import { makeFairSemaphore } from "../../../src/engine/net/FairSemaphore.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { longEnough } from "../../support/LongEnough.ts"
import { shellScript } from "../../support/Script.ts"

/* Tests docs/contribute/attacks.md, "Scripts that sign", with real programs. */

const turns = makeFairSemaphore(16)

const run = (path: string, more: Partial<ScriptRequest> = {}) =>
  Effect.flatMap(Scripts, (scripts) =>
    scripts.run({
      path,
      args: [],
      env: {},
      stdin: undefined,
      timeoutMillis: 20_000,
      maxOutputBytes: 1_048_576,
      turns,
      ...more
    })).pipe(Effect.provide(Scripts.layer))

/** Waits until a process has ended. */
const gone = (pid: number) =>
  Effect.promise(async () => {
    for (;;) {
      try {
        process.kill(pid, 0)
        // A zombie has ended, but still has an entry in the process table.
        if (/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"))) return
      } catch {
        return
      }
      await delay(10)
    }
  })

const appears = (path: string) =>
  Effect.promise(async () => {
    while (!existsSync(path) || !readFileSync(path, "utf8").endsWith("\n")) await delay(10)
    return readFileSync(path, "utf8").trim()
  })

describe("a program", () => {
  it.live("gets its arguments and its input unchanged, because no shell interprets them", () =>
    Effect.gen(function*() {
      const path = shellScript("printf '%s|' \"$@\"; cat; echo said >&2")
      const args = ["-n", "$(id)", "a b", "'\"", "*", ""]
      const { exit, stderr, stdout } = yield* run(path, { args, stdin: "in\n" })
      assert.deepStrictEqual([exit, stdout.toString(), stderr.toString()], [0, `${args.join("|")}|in\n`, "said\n"])
    }))

  it.live("gets only the documented variables in its environment", () =>
    Effect.gen(function*() {
      process.env["PLANTED_SECRET"] = "SWORDFISH"
      const { stdout } = yield* run("/usr/bin/env", { env: { ACME_FILTER_HOOK: "connection", EMPTY: "" } })
      delete process.env["PLANTED_SECRET"]
      assert.deepStrictEqual(
        stdout.toString().trim().split("\n").map((line) => line.split("=")[0]).sort(),
        ["ACME_FILTER_HOOK", "EMPTY", "PATH"]
      )
    }))

  it.live.each([0, 1, 3, 127, 255])(
    "is reported with its exit code %i",
    (code) => Effect.map(run(shellScript(`exit ${code}`)), ({ exit }) => assert.strictEqual(exit, code))
  )

  it.live("is reported with the signal if a signal ended it", () =>
    Effect.map(run(shellScript("kill -TERM $$")), ({ exit }) => assert.strictEqual(exit, "SIGTERM")))

  it.live("is found from the working directory, and never in PATH", () =>
    Effect.gen(function*() {
      const path = relative(process.cwd(), shellScript("echo here"))
      assert.strictEqual((yield* run(path)).stdout.toString(), "here\n")
      assert.strictEqual((yield* Effect.flip(run("env"))).reason, "not_started")
    }))

  it.live("is not started if it is absent, is not executable, is a directory, or has a variable that no program can have", () =>
    Effect.gen(function*() {
      const paths = [shellScript("exit 0", 0o644), join(freshDirectory(), "none"), freshDirectory()]
      for (const path of paths) {
        const failure = yield* Effect.flip(run(path))
        assert.strictEqual(failure.reason, "not_started", path)
        assert.include(failure.detail, path)
      }
      const astray = shellScript("exit 0")
      writeFileSync(astray, "#!/nowhere/interpreter\n")
      assert.strictEqual(
        (yield* Effect.flip(run(astray))).detail,
        `could not be started: the program that its first line names is not there: ${astray} (ENOENT)`
      )
      const failure = yield* Effect.flip(run("/bin/true", { env: { A: "a\0SWORDFISH" } }))
      assert.strictEqual(failure.reason, "not_started")
      assert.notInclude(failure.detail, "SWORDFISH")
    }))

  it.live("is not started if its variables are longer than the system permits, and the message says so", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* run("/bin/true", { env: { A: "x".repeat(longestVariable) } })).exit, 0)
      const failure = yield* Effect.flip(run("/bin/true", { env: { A: "SWORDFISH".repeat(100_000) } }))
      assert.deepInclude({ ...failure }, {
        reason: "not_started",
        detail: "could not be started: its arguments and variables are longer than this system takes (E2BIG)"
      })
    }))

  it.live("may leave any amount of its input unread without causing an error", () =>
    Effect.gen(function*() {
      for (const body of ["exit 0", "exec <&-; exit 0"]) {
        const { exit } = yield* run(shellScript(body), { stdin: Buffer.alloc(4_000_000, "x") })
        assert.strictEqual(exit, 0)
      }
    }))

  it.live("is killed at the timeout with all processes that it started", () =>
    Effect.gen(function*() {
      const pidFile = join(freshDirectory(), "pid")
      const path = shellScript(`sleep 1000 & echo $! > ${pidFile}.new; mv ${pidFile}.new ${pidFile}; wait`)
      const started = yield* longEnough(500, (timeoutMillis) =>
        Effect.gen(function*() {
          assert.strictEqual((yield* Effect.flip(run(path, { timeoutMillis }))).reason, "timeout")
          return existsSync(pidFile) ? Number(readFileSync(pidFile, "utf8")) : undefined
        }))
      yield* gone(started)
    }))

  it.live("is killed with all processes that it started if the caller is interrupted", () =>
    Effect.gen(function*() {
      const pidFile = join(freshDirectory(), "pid")
      const fiber = yield* Effect.forkChild(run(shellScript(`sleep 1000 & echo $! > ${pidFile}; wait`)))
      const pid = Number(yield* appears(pidFile))
      yield* Fiber.interrupt(fiber)
      yield* gone(pid)
    }))

  it.live("ends with its own result although a grandchild holds the pipe, and the grandchild is killed", () =>
    Effect.gen(function*() {
      const pidFile = join(freshDirectory(), "pid")
      const { exit, stdout } = yield* run(shellScript(`echo said; sleep 1000 & echo $! > ${pidFile}; exit 3`))
      assert.deepStrictEqual([exit, stdout.toString()], [3, "said\n"])
      yield* gone(Number(yield* appears(pidFile)))
    }))

  it.live("ends without waiting for a grandchild in another session that holds the pipe", () =>
    Effect.gen(function*() {
      const pidFile = join(freshDirectory(), "pid")
      const { exit, stdout } = yield* run(
        shellScript(
          `echo said; setsid sh -c 'echo $$ > ${pidFile}; exec sleep 60' & while [ ! -s ${pidFile} ]; do sleep 0.05; done`
        )
      )
      assert.deepStrictEqual([exit, stdout.toString()], [0, "said\n"])
      process.kill(Number(yield* appears(pidFile)), "SIGKILL")
    }))

  it.live("is killed at the timeout if its output never ends", () =>
    Effect.gen(function*() {
      for (const program of ["exec yes", "exec yes >&2"]) {
        const { detail, reason } = yield* Effect.flip(run(shellScript(program), { timeoutMillis: 1500 }))
        assert.strictEqual(reason, "timeout")
        assert.match(detail, /^printed more than the \d+ octets that are read, and did not end within 1500 ms$/)
      }
    }))

  it.live("has its output read up to the limit and no further", () =>
    Effect.gen(function*() {
      const { exit, stdout } = yield* run(shellScript("head -c 70000 /dev/zero"), { maxOutputBytes: 70_000 })
      assert.deepStrictEqual([exit, stdout.length], [0, 70_000])
      const more = yield* run(shellScript("head -c 70001 /dev/zero"), { maxOutputBytes: 70_000 })
      assert.deepStrictEqual([more.exit, more.stdout.length], [0, 70_000])
    }))

  it.live("waits for a free slot no longer than its own time limit", () =>
    Effect.gen(function*() {
      const one = makeFairSemaphore(1)
      const holder = yield* Effect.forkChild(one.take(Effect.never), { startImmediately: true })
      const failure = yield* Effect.flip(run("/bin/true", { turns: one, timeoutMillis: 100 }))
      assert.deepInclude(failure, {
        reason: "not_started",
        detail: "did not begin within 100 ms, because other programs ran"
      })
      yield* Fiber.interrupt(holder)
      assert.strictEqual((yield* run("/bin/true", { turns: one })).exit, 0)
    }))

  it.effect("has its whole time limit after it has waited for a free slot", () =>
    Effect.gen(function*() {
      const one = makeFairSemaphore(1)
      const holder = yield* Effect.forkChild(one.take(Effect.never), { startImmediately: true })
      const [begun, told] = ["begun", "told"].map((name) => join(freshDirectory(), name))
      const path = shellScript(`echo > ${begun}; while [ ! -e ${told} ]; do sleep 0.01; done`)
      const waiting = yield* Effect.forkChild(run(path, { turns: one, timeoutMillis: 1000 }), {
        startImmediately: true
      })
      yield* TestClock.adjust(900)
      yield* Fiber.interrupt(holder)
      yield* appears(begun ?? "")
      yield* TestClock.adjust(900)
      writeFileSync(told ?? "", "")
      assert.strictEqual((yield* Fiber.join(waiting)).exit, 0)
    }))
})

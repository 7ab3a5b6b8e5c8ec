import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { freshDirectory } from "./support/Databases.ts"

/* Runs `.ci/run` with an npm that only reports how programs ended, and checks what the gate concludes. */

interface Said {
  readonly output: string
  readonly code: number
  /** The program that must have begun before this one ends. */
  readonly beside?: string
}

const green: Said = { output: "10 passed, 0 failed", code: 0 }
const red = (failure: string): Said => ({ output: `${failure}\n9 passed, 1 failed`, code: 1 })

/** The reports of each program, one for each run. The last report is repeated. A program that is not named succeeds. */
type Programs = { readonly [words: string]: ReadonlyArray<Said> }

/** Returns how the gate ended with such programs, and which of them ran. */
const gate = (programs: Programs, env: { readonly [name: string]: string } = {}) => {
  const place = freshDirectory()
  const at = (...path: ReadonlyArray<string>) => join(place, ...path)
  mkdirSync(at(".ci"))
  mkdirSync(at("bin"))
  cpSync(new URL("../.ci/run", import.meta.url).pathname, at(".ci/run"))
  const npm = `
    import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
    const words = process.argv.slice(2).join(" ")
    const ran = existsSync(${JSON.stringify(at("ran"))}) ? readFileSync(${JSON.stringify(at("ran"))}, "utf8") : ""
    appendFileSync(${JSON.stringify(at("ran"))}, words + "\\n")
    const [, prefix, version] = /^install .*--prefix (\\S+) \\S+@(\\S+)$/.exec(words) ?? []
    if (prefix !== undefined) {
      mkdirSync(prefix + "/node_modules/.bin", { recursive: true })
      const said = "acme-svc needs Node.js 22.19 or newer, but this is " + version + "."
      writeFileSync(prefix + "/node_modules/.bin/node", "#!/bin/sh\\necho '" + said + "'\\nexit 1\\n", { mode: 0o755 })
      process.exit(0)
    }
    if (words === "ci") process.exit(0)
    const answers = ${JSON.stringify(programs)}[words] ?? [${JSON.stringify(green)}]
    const before = ran.split("\\n").filter((one) => one === words).length
    const { output, code, beside = words } = answers[Math.min(before, answers.length - 1)]
    const hasBegun = () => readFileSync(${JSON.stringify(at("ran"))}, "utf8").split("\\n").includes(beside)
    for (let looks = 0; !hasBegun(); looks++) {
      if (looks === 1000) process.exit(1)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
    }
    console.log(output)
    process.exit(code)
  `
  writeFileSync(at("npm.mjs"), npm)
  writeFileSync(at("bin/npm"), `#!/bin/sh\nexec '${process.execPath}' '${at("npm.mjs")}' "$@"\n`, { mode: 0o755 })
  // Everything is there that the interop run installs.
  mkdirSync(at("test/support"), { recursive: true })
  writeFileSync(at("test/support/OpenBao.ts"), "export const hasBao = () => true\n")
  for (const client of ["certbot", "lego", "curl", "softhsm2-util", "gcc"]) {
    writeFileSync(at("bin", client), "", { mode: 0o755 })
  }
  const { status, stdout } = spawnSync("bash", [at(".ci/run")], {
    encoding: "utf8",
    env: { ...process.env, ...env, PATH: `${at("bin")}:${process.env["PATH"]}` }
  })
  const lines = stdout.trimEnd().split("\n")
  return { status, stdout, last: lines.at(-1), ran: readFileSync(at("ran"), "utf8").trimEnd().split("\n") }
}

const seeds = "run simulate -- --seeds 100"
const unsteady = "== Passed in a second run only, which is a defect to look for"
const failure = "FAILED test/kernel/Some.test.ts > holds what it holds: expected 1 to equal 2"

describe(".ci/run", () => {
  it("adds up the numbers of all its steps", () => {
    const { last, ran, status, stdout } = gate({})
    assert.deepStrictEqual([status, last], [0, "120 passed, 0 failed"], stdout)
    assert.strictEqual(ran.filter((words) => words === "test").length, 1)
    assert.notInclude(stdout, "== What failed")
    assert.notInclude(stdout, unsteady)
  })

  it("runs failed files once more", () => {
    const { last, ran, status, stdout } = gate({ test: [red(failure)] })
    assert.deepStrictEqual([status, last], [0, "120 passed, 0 failed"], stdout)
    assert.include(ran, "test -- test/kernel/Some.test.ts")
    assert.include(stdout.slice(stdout.indexOf(unsteady)), failure)
  })

  it("fails if a test fails twice", () => {
    const { last, status, stdout } = gate({
      "test": [red(failure)],
      "test -- test/kernel/Some.test.ts": [red(failure)]
    })
    assert.deepStrictEqual([status, last], [1, "119 passed, 1 failed"], stdout)
    assert.notInclude(stdout, unsteady)
    assert.include(stdout.slice(stdout.indexOf("== What failed of npm test")), failure)
  })

  it("runs no file again if many files fail or if something other than a test fails", () => {
    const files = [1, 2, 3, 4].map((n) => `FAILED test/kernel/Some${n}.test.ts > holds: broken`)
    for (
      const output of [
        `${files.join("\n")}\n6 passed, 4 failed`,
        "FAILED outside of tests: broken\n10 passed, 1 failed"
      ]
    ) {
      const { ran, status } = gate({ test: [{ output, code: 1 }] })
      assert.strictEqual(status, 1)
      assert.deepStrictEqual(ran.filter((words) => words.startsWith("test -- test/")), [])
    }
  })

  it("runs the clients once more, but neither the simulation nor the faults", () => {
    const clients = gate({ "run interop": [red("FAILED certbot http-01 on SQLite: timed out"), green] })
    assert.deepStrictEqual([clients.status, clients.last], [0, "120 passed, 0 failed"], clients.stdout)
    assert.include(clients.stdout, unsteady)
    const faults = "run faults -- --rounds 1 --share 0.05 --limit 10 --but minute --but then the"
    const lost = gate({
      [seeds]: [red("seed 17: a certificate is gone"), green],
      [faults]: [red("power cut: LOST one"), green]
    })
    assert.deepStrictEqual([lost.status, lost.last], [1, "118 passed, 2 failed"], lost.stdout)
    const end = lost.stdout.slice(lost.stdout.indexOf("== What failed"))
    assert.include(end, "seed 17: a certificate is gone")
    assert.include(end, "power cut: LOST one")
  })

  it("runs the simulation once at the same time as the clients", () => {
    const { last, ran, status, stdout } = gate({ "run interop": [{ ...green, beside: seeds }] })
    assert.deepStrictEqual([status, last], [0, "120 passed, 0 failed"], stdout)
    assert.lengthOf(ran.filter((words) => words === seeds), 1)
    assert.match(stdout, /^== npm run simulate -- --seeds 100\n10 passed, 0 failed\n== npm run simulate .*: done/m)
  })

  it("stops a step that does not end, and runs the others", () => {
    const hanging = { "run packages": [{ ...green, beside: "a program that is never run" }] }
    const { last, ran, status, stdout } = gate(hanging, { ACME_GATE_STEP_LIMIT: "15s" })
    assert.deepStrictEqual([status, last], [1, "110 passed, 1 failed"], stdout)
    assert.include(stdout, "== npm run packages: FAILED (124)")
    assert.strictEqual(ran.at(-1), "run alerts")
  })

  it("counts a step that ends without numbers as one failure", () => {
    const { last, status, stdout } = gate({ "run check": [{ output: "src/main.ts: no such name", code: 2 }] })
    assert.deepStrictEqual([status, last], [1, "110 passed, 1 failed"], stdout)
    assert.include(stdout.slice(stdout.indexOf("== What failed of npm run check")), "src/main.ts: no such name")
  })
})

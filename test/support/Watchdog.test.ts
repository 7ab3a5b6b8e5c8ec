import { spawn } from "node:child_process"
import { assert, describe, it } from "vitest"

/** The source of a process that starts a program that never ends, reports it, and then never ends itself. */
const orphanage = (scope: "process" | "group"): string => `
import { spawn } from "node:child_process"
import { endWithParent, watch } from ${JSON.stringify(new URL("Watchdog.ts", import.meta.url).href)}
endWithParent()
watch(spawn("tail", ["-f", "/dev/null"], { detached: true, stdio: ["ignore", "inherit", "ignore"] }), "${scope}")
process.stdout.write("running\\n")
setInterval(() => undefined, 60_000)
`

/** Starts a process that starts a program. The output ends when both are gone. */
const parent = async (scope: "process" | "group") => {
  const child = spawn(process.execPath, ["--input-type=module", "--eval", orphanage(scope)], {
    stdio: ["ignore", "pipe", "inherit", "ipc"]
  })
  const output = child.stdout
  if (output === null) throw new Error("the output is no pipe")
  const ended = new Promise<void>((done) => output.once("close", done))
  const said = await new Promise<string>((done) => output.once("data", (chunk: Buffer) => done(chunk.toString())))
  assert.strictEqual(said, "running\n")
  return { child, ended }
}

describe("programs that tests start", () => {
  it.each(["process", "group"] as const)("end when the process that started them is killed: %s", async (scope) => {
    const { child, ended } = await parent(scope)
    child.kill("SIGKILL")
    await ended
  })

  it("end with the test run whose process started them", async () => {
    const { child, ended } = await parent("process")
    const left = new Promise((done) => child.once("exit", (_, signal) => done(signal)))
    child.disconnect()
    assert.strictEqual(await left, "SIGKILL")
    await ended
  })
})

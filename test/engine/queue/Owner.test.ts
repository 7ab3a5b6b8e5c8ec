import { spawn } from "node:child_process"
import { once } from "node:events"
import { assert, describe, it } from "vitest"
import { here, isGone, ownerOf, renews } from "../../../src/engine/queue/Owner.ts"
import type { Machine } from "../../../src/engine/queue/Owner.ts"

const machine = (processes: { readonly [pid: number]: string }, place = "boot-1"): Machine => ({
  place,
  begun: (pid) => processes[pid]
})
const nowhere: Machine = { place: undefined, begun: () => undefined }
const of = (self: Machine, pid: number) => ownerOf(self, { host: "h", pid, uuid: "0190-a" })

describe("an owner", () => {
  it("is gone when its process is, or another one has its id", () => {
    const before = machine({ 7: "100", 8: "200" })
    const owner = of(before, 7)
    assert.strictEqual(owner, "h:7:0190-a:boot-1.100")
    assert.isFalse(isGone(before)(owner))
    assert.isTrue(isGone(machine({ 8: "200" }))(owner), "nobody has the id")
    assert.isTrue(isGone(machine({ 7: "300" }))(owner), "somebody else has it")
  })

  it("is left to its leases where nothing can be known", () => {
    const none = machine({})
    const owner = of(machine({ 7: "100" }), 7)
    assert.isFalse(isGone(machine({}, "boot-2"))(owner), "another boot, another machine, another container")
    assert.isFalse(isGone(nowhere)(owner), "the kernel does not say where this is")
    assert.isFalse(isGone(none)(of(nowhere, 7)), "it did not know itself")
    assert.isFalse(isGone(none)(of(machine({ 7: "hidden" }), 7)))
    assert.isFalse(isGone(machine({ 7: "hidden" }))(owner), "it may be hidden from this user")
    for (const foreign of ["", "h:7:0190-a", "dead", "h:x:0190-a:boot-1.100"]) assert.isFalse(isGone(none)(foreign))
  })

  it("of an earlier version did not renew its leases", () => {
    assert.isTrue(renews(of(machine({ 7: "100" }), 7)))
    assert.isTrue(renews(of(nowhere, 7)))
    for (const earlier of ["h:7:0190-a", "", "dead"]) assert.isFalse(renews(earlier))
  })

  it.runIf(process.platform === "linux")("is told by the kernel", async () => {
    const self = here()
    assert.match(self.place ?? "", /^[0-9a-f]{8}-\d+$/)
    assert.isFalse(isGone(self)(of(self, process.pid)))
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" })
    await once(child, "spawn")
    const owner = of(self, child.pid ?? 0)
    assert.isFalse(isGone(self)(owner))
    child.kill("SIGKILL")
    await once(child, "exit")
    assert.isTrue(isGone(self)(owner))
  })
})

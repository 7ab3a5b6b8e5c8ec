import { availableParallelism } from "node:os"
import { assert, describe, it } from "vitest"
import { processesOf, tasksOf } from "../../src/app/ProcessPlan.ts"
import { everyRole } from "../../src/domain/Role.ts"
import { configOf } from "../support/Graph.ts"

const config = (server: string) =>
  configOf(`[database]\nurl = "postgres://acme@db.example/acme"\n[server]\n${server}\n`)

describe("the processes of a service", () => {
  it("are as many as configured, or one for each core, but at most one for each slot for requests", () => {
    assert.strictEqual(processesOf(config("")), 1)
    assert.strictEqual(processesOf(config("processes = 7")), 7)
    assert.strictEqual(processesOf(config(`processes = "auto"`)), availableParallelism())
    assert.strictEqual(processesOf(config(`processes = "auto"\nmax_concurrent_requests = 1`)), 1)
  })

  it("divide the slots for requests among themselves", () => {
    const tasks = tasksOf(new Set(everyRole), 3, config("processes = 3\nmax_concurrent_requests = 11"))
    assert.deepStrictEqual(tasks, [
      { process: 0, roles: ["admin", "worker"], speaksFor: [], requests: 11 },
      { process: 1, roles: ["acme"], speaksFor: ["acme", "admin", "worker"], requests: 4 },
      { process: 2, roles: ["acme"], speaksFor: [], requests: 4 },
      { process: 3, roles: ["acme"], speaksFor: [], requests: 3 }
    ])
  })

  it("do not include a process that would have no role", () => {
    const tasks = tasksOf(new Set(["acme"] as const), 2, config("processes = 2"))
    assert.deepStrictEqual(tasks.map(({ process, roles }) => [process, roles]), [[1, ["acme"]], [2, ["acme"]]])
  })
})

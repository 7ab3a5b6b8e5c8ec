import { assert, describe, it } from "vitest"
import { sharesOf } from "../../tools/bench/Attribution.ts"

/** A profile of frames that call each other in a row, and how often each was seen running. */
const profileOf = (frames: ReadonlyArray<readonly [name: string, url: string, samples: number]>) => ({
  nodes: [
    { id: 1, callFrame: { functionName: "(root)", url: "" }, children: [2] },
    ...frames.map(([functionName, url], index) => ({
      id: index + 2,
      callFrame: { functionName, url },
      ...index + 1 < frames.length ? { children: [index + 3] } : {}
    }))
  ],
  samples: frames.flatMap(([, , samples], index) => Array.from({ length: samples }, () => index + 2))
})

describe("the attribution of a profile", () => {
  it("depends on the file of a function", () => {
    const shares = sharesOf(profileOf([
      ["runLoop", "file:///service/node_modules/effect/dist/internal/effect.js", 5],
      ["decode", "file:///service/node_modules/effect/dist/SchemaParser.js", 1],
      ["issue", "file:///service/src/operations/work/Issuance.ts", 2],
      ["onread", "node:internal/stream_base_commons", 1],
      ["elsewhere", "file:///service/node_modules/other/index.js", 1]
    ]))
    assert.deepStrictEqual(Object.fromEntries(shares), {
      "Effect runtime: fibers, layers, waits, scheduler": 0.5,
      "Schema": 0.1,
      "operations": 0.2,
      "Node's HTTP, streams and sockets": 0.1,
      "everything else": 0.1
    })
  })

  it("attributes native code to its caller", () => {
    const shares = sharesOf(profileOf([
      ["signOneShot", "node:internal/crypto/sig", 1],
      ["run", "", 3],
      ["execute", "file:///service/src/engine/sql/Sqlite.ts", 1],
      ["run", "", 3]
    ]))
    assert.deepStrictEqual(Object.fromEntries(shares), {
      "signatures, hashes, keys, random octets": 0.5,
      "statements: SQLite itself, and the database layer in JavaScript": 0.5
    })
  })

  it("leaves out the time in which nothing ran", () => {
    const shares = sharesOf(profileOf([["(idle)", "", 90], ["(garbage collector)", "", 10]]))
    assert.deepStrictEqual(Object.fromEntries(shares), { "garbage collection on the main thread": 1 })
  })
})

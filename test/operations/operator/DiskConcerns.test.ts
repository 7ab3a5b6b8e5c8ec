import { Effect, Redacted } from "effect"
import { assert, describe, it } from "vitest"
import { diskSpaceOf } from "../../../src/engine/host/Files.ts"
import { diskConcerns, spaceConcerns } from "../../../src/operations/operator/attention/DiskConcerns.ts"
import { configOf } from "../../support/Graph.ts"

/* Tests whether the service notices that the disk of its database is full. */

const mebibyte = 1_048_576
const gibibyte = 1024 * mebibyte

describe("the disk of the database", () => {
  it("is a warning if it is nearly full, and an alarm if it is full", () => {
    const told = (free: number, total: number) => spaceConcerns({ free, total }).map(({ severity }) => severity)
    assert.deepStrictEqual(told(16 * mebibyte, 64 * mebibyte), [], "a small disk")
    assert.deepStrictEqual(told(16 * mebibyte - 1, 64 * mebibyte), ["alarm"])
    assert.deepStrictEqual(told(4 * gibibyte, 100 * gibibyte), ["warning"])
    assert.deepStrictEqual(told(5 * gibibyte, 100 * gibibyte), [], "a twentieth")
    assert.deepStrictEqual(told(6 * gibibyte, 1000 * gibibyte), [], "a large disk")
    assert.strictEqual(
      spaceConcerns({ free: 1.5 * mebibyte, total: gibibyte })[0]?.title,
      "The disk of the database has only 1 MiB left"
    )
  })

  it("is looked at where the file of the database is", async () => {
    const { database } = configOf()
    const told = (url: string) =>
      Effect.runPromise(diskConcerns({ database: { ...database, url: Redacted.make(url) } }))
    const space = await Effect.runPromise(Effect.flatMap(diskSpaceOf("/acme.db"), Effect.fromOption))
    assert.isAbove(space.total, space.free)
    assert.deepStrictEqual(await told("sqlite:///acme.db"), spaceConcerns(space))
    for (const url of ["postgres://u@h/d", "sqlite://:memory:", "sqlite:///nowhere/at/all.db"]) {
      assert.deepStrictEqual(await told(url), [])
    }
  })
})

import { Effect, Schema } from "effect"
import { assert, describe, it } from "vitest"
import { LiveCertificates } from "../../../src/domain/OperatorError.ts"
import { act } from "../../../src/surfaces/operator/Act.ts"
import { key, word } from "../../../src/surfaces/operator/Field.ts"

/*
 * Mistakes in a declaration do not compile. `npm run check` judges each line below a `@ts-expect-error`: it fails if the line has no
 * fault any more.
 */

const right = {
  id: "readThing",
  does: "Show a thing",
  access: "viewer",
  input: { id: key("The id."), kind: word(["red", "blue"], "The kind.") },
  output: Schema.Struct({ id: Schema.String, items: Schema.Array(Schema.Struct({ size: Schema.Number })) }),
  errors: [],
  run: ({ id }: { readonly id: string }) => Effect.succeed({ id, items: [{ size: 1 }] })
} as const

const declared = [
  act({ ...right, http: { route: "GET /api/things/{id}" }, cli: { command: "thing show", example: "thing show ID" } }),

  // A refusal that is not declared.
  // @ts-expect-error
  act({ ...right, run: () => new LiveCertificates({ noun: "order", id: "1", count: 1 }) }),

  // A member that the input has not.
  // @ts-expect-error
  act({ ...right, run: ({ name }: { readonly name: string }) => Effect.succeed({ id: name, items: [] }) }),

  // A role that nobody has.
  // @ts-expect-error
  act({ ...right, access: "superuser" }),

  // No word about who may do it.
  // @ts-expect-error
  act({ ...right, access: undefined }),

  // A column that the items of the answer do not have.
  act({
    ...right,
    // @ts-expect-error
    cli: { command: "thing list", example: "thing list", columns: ({ colour }) => ({ colour }) }
  }),

  // A flag for a word of a member that the input does not have.
  act({
    ...right,
    cli: {
      command: "thing show",
      example: "thing show ID",
      // @ts-expect-error
      spelt: { shape: { round: ["round", "Round."] } }
    }
  }),

  // A hole of the path that is no member.
  // @ts-expect-error
  act({ ...right, http: { route: "GET /api/things/{number}" } }),

  // An answer that lacks a member.
  // @ts-expect-error
  act({ ...right, run: ({ id }: { readonly id: string }) => Effect.succeed({ id }) })
]

describe("a declaration", () => {
  it("with a mistake does not compile, and one without is taken as it is", () => {
    assert.strictEqual(declared.length, 9)
    assert.strictEqual(declared[0]?.id, "readThing")
  })
})

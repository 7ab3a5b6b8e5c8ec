import { Effect, Schema } from "effect"
import { assert, describe, it } from "vitest"
import { LiveCertificates } from "../../../src/domain/OperatorError.ts"
import { act } from "../../../src/surfaces/operator/Act.ts"
import { key, word } from "../../../src/surfaces/operator/Field.ts"

/*
 * Mistakes in a declaration do not compile. `npm run check` judges each line below a `@ts-expect-error`, and fails if
 * the line no longer has a fault.
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

  // The refusal is not declared.
  // @ts-expect-error
  act({ ...right, run: () => new LiveCertificates({ noun: "order", id: "1", count: 1 }) }),

  // The input does not have this member.
  // @ts-expect-error
  act({ ...right, run: ({ name }: { readonly name: string }) => Effect.succeed({ id: name, items: [] }) }),

  // This role does not exist.
  // @ts-expect-error
  act({ ...right, access: "superuser" }),

  // The declaration does not say who may perform the act.
  // @ts-expect-error
  act({ ...right, access: undefined }),

  // The items of the answer do not have this column.
  act({
    ...right,
    // @ts-expect-error
    cli: { command: "thing list", example: "thing list", columns: ({ colour }) => ({ colour }) }
  }),

  // The input does not have the member that this flag is for.
  act({
    ...right,
    cli: {
      command: "thing show",
      example: "thing show ID",
      // @ts-expect-error
      spelt: { shape: { round: ["round", "Round."] } }
    }
  }),

  // The parameter of the path is not a member.
  // @ts-expect-error
  act({ ...right, http: { route: "GET /api/things/{number}" } }),

  // The answer lacks a member.
  // @ts-expect-error
  act({ ...right, run: ({ id }: { readonly id: string }) => Effect.succeed({ id }) })
]

describe("a declaration", () => {
  it("does not compile if it has a mistake, and is accepted unchanged if it is correct", () => {
    assert.strictEqual(declared.length, 9)
    assert.strictEqual(declared[0]?.id, "readThing")
  })
})

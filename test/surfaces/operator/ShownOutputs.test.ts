import { Schema } from "effect"
import { assert, describe, it } from "vitest"
import { isFile } from "../../../src/surfaces/operator/Act.ts"
import { nouns } from "../../../src/surfaces/operator/Nouns.ts"

/* What commands print if their acts do not say how: one line for each member of the output. */

interface JsonSchema {
  readonly type?: string
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly items?: JsonSchema
  readonly allOf?: ReadonlyArray<JsonSchema>
}

/** Returns the names of the members that fit on no line, because they are objects or lists of objects. */
const nestedIn = (output: Schema.Top): ReadonlyArray<string> => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(output)
  const found = (given: JsonSchema): JsonSchema => {
    const name = given.$ref?.split("/").at(-1)
    return name === undefined ? given : found(definitions[name] as JsonSchema)
  }
  const isText = (given: JsonSchema): boolean =>
    ["string", "integer", "number", "boolean"].includes(found(given).type ?? "")
  return Object.entries(found(schema as JsonSchema).properties ?? {}).flatMap(([name, member]) => {
    const { items, type } = found(member)
    return isText(member) || type === "array" && items !== undefined && isText(items) ? [] : [name]
  })
}

describe("a command without a form of its own for the output of its act", () => {
  const plain = nouns.flatMap(({ acts }) => acts).filter(({ cli, output }) =>
    cli !== undefined && !isFile(output) && [cli.text, cli.columns, cli.members].every((form) => form === undefined)
  )

  it.each(plain)("prints all of $id as text", ({ output }) => {
    assert.deepStrictEqual(nestedIn(output), [])
  })
})

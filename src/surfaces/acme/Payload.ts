import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { withoutAbsent } from "../../crypto/jose/Absent.ts"
import { parseObject } from "../../crypto/jose/Jws.ts"
import { Malformed } from "../../domain/AcmeError.ts"
import type { Checked, Payload } from "../../operations/acme/JwsChecks.ts"
import { misfit } from "./Misfit.ts"

/* Readers of payloads, by the shape that a resource wants. */

/** The bytes as they are, for an operation that reads them itself. */
export const raw: Payload<Buffer> = Result.succeed

const misshapen = (detail: string): Checked<never> => Result.fail({ error: new Malformed({ detail }) })

/** The optional members of a payload. None of its objects within have any. */
const optionalMembers = ({ ast }: Schema.Top): ReadonlyArray<string> =>
  SchemaAST.isObjects(ast)
    ? ast.propertySignatures.flatMap(({ name, type }) => SchemaAST.isOptional(type) ? [String(name)] : [])
    : []

const decodePayload = <A, I>(schema: Schema.Codec<A, I>): Payload<A> => {
  const decode = Schema.decodeUnknownResult(schema)
  const optional = optionalMembers(schema)
  return (bytes) => {
    const object = parseObject(bytes)
    if (object === undefined) return misshapen("The payload is not a JSON object in UTF-8.")
    const decoded = decode(withoutAbsent(object, optional))
    return Result.isSuccess(decoded) ? Result.succeed(decoded.success) : misshapen(misfit(decoded.failure.issue))
  }
}

/** The payload must be a JSON object of this shape. */
export const typed = <A, I>(schema: Schema.Codec<A, I>): Payload<A> => {
  const decode = decodePayload(schema)
  return (bytes) =>
    bytes.length === 0 ? misshapen("The payload is empty; this resource requires a JSON object.") : decode(bytes)
}

/** The payload must be empty or a JSON object of this shape. */
export const optional = <A, I>(schema: Schema.Codec<A, I>): Payload<A | undefined> => {
  const decode = decodePayload(schema)
  return (bytes) => bytes.length === 0 ? Result.succeed(undefined) : decode(bytes)
}

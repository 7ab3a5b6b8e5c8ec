import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type * as SchemaIssue from "effect/SchemaIssue"
import { parseObject, withoutAbsent } from "../../crypto/jose/Jws.ts"
import { Malformed, NotFound } from "../../domain/AcmeError.ts"
import { isId } from "../../domain/Id.ts"
import type { Request } from "../../engine/http/Message.ts"
import { formOf, pathText } from "../../engine/JsonForm.ts"
import type { ByAccount, ByEither, ByKey, SignedRequest } from "../../operations/acme/Authenticate.ts"
import type { Checked, Payload } from "../../operations/acme/JwsChecks.ts"
import { payloadFault } from "../../operations/acme/JwsChecks.ts"
import type { Endpoint } from "./Endpoint.ts"

/* What the handlers get from a POST: its facts, the id in its path, and its payload. */

/** A POST whose body has been read. */
export interface Posted extends SignedRequest {
  readonly endpoint: Endpoint
  /** The record id in the path, if the route has one. It has not been checked, so it can be any text. */
  readonly id: string
  /** The query with its question mark; empty if the URL has no query. */
  readonly query: string
}

/** The input of a handler for requests signed by an account. */
export type BySomeAccount<P> = Posted & ByAccount<P>

/** The input of newAccount. */
export type BySomeKey<P> = Posted & ByKey<P>

/** The input of revokeCert. */
export type BySomeone<P> = Posted & ByEither<P>

/** Returns a request with its body, for a route of a profile. */
export const postedOf = (
  endpoint: Endpoint,
  { clientIp: ip, id: request_id, path, target, userAgent: user_agent }: Request,
  body: Buffer,
  id: string
): Posted => ({
  profile: endpoint.profile,
  url: endpoint.origin + target,
  accountPrefix: endpoint.accountPrefix,
  respelled: endpoint.respelled,
  body,
  sender: { ip, user_agent, request_id },
  endpoint,
  id,
  query: target.slice(path.length)
})

/**
 * Returns the id in the path as an id of this service. For any other text, fails as for a record that does not exist.
 */
export const recordId = <Id>(make: (id: string) => Id, id: string): Effect.Effect<Id, NotFound> =>
  isId(id) ? Effect.succeed(make(id)) : new NotFound()

/**
 * Describes what is wrong with the first member of a payload that does not fit its schema. The sentence names the
 * member and the required form, and never quotes the request.
 */
const misfit = (
  issue: SchemaIssue.Issue,
  path: ReadonlyArray<PropertyKey> = []
): string => {
  const told = (fault: string) => path.length === 0 ? `The payload ${fault}.` : `The member ${pathText(path)} ${fault}.`
  switch (issue._tag) {
    case "Pointer":
      return misfit(issue.issue, [...path, ...issue.path])
    case "AnyOf":
    case "Composite": {
      const [first] = issue.issues
      return first === undefined ? told("has another form than expected") : misfit(first, path)
    }
    case "Encoding":
    case "Filter":
      return misfit(issue.issue, path)
    case "MissingKey":
      return told("is missing")
    case "InvalidType":
      return told(`must be ${formOf(issue.ast)}`)
    case "InvalidValue":
      return told(`is ${issue.annotations?.message ?? "not allowed"}`)
    default:
      return told("is not allowed")
  }
}

/* The functions that read payloads. Each accepts the shape that its resources require. */

/** Returns the bytes unchanged, for an operation that reads them itself. */
export const raw: Payload<Buffer> = Result.succeed

const misshapen = (detail: string): Checked<never> => Result.fail({ error: new Malformed({ detail }) })

/** Returns the names of the optional members of a payload. Objects within payloads have no optional members. */
const optionalMembers = ({ ast }: Schema.Top): ReadonlyArray<string> =>
  SchemaAST.isObjects(ast)
    ? ast.propertySignatures.flatMap(({ name, type }) => SchemaAST.isOptional(type) ? [String(name)] : [])
    : []

/** Reads a payload that must be a JSON object of this shape. An empty payload means `empty`. */
const decodePayload = <A, I, E>(schema: Schema.Codec<A, I>, empty: Checked<E>): Payload<A | E> => {
  const decode = Schema.decodeUnknownResult(schema)
  const optional = optionalMembers(schema)
  return (bytes) => {
    if (bytes.length === 0) return empty
    const object = parseObject(bytes)
    if (object === undefined) return misshapen(payloadFault(bytes))
    const decoded = decode(withoutAbsent(object, optional))
    return Result.isSuccess(decoded) ? Result.succeed(decoded.success) : misshapen(misfit(decoded.failure.issue))
  }
}

/** Reads a payload that must be a JSON object of this shape. */
export const typed = <A, I>(schema: Schema.Codec<A, I>): Payload<A> =>
  decodePayload(schema, misshapen(payloadFault(new Uint8Array())))

/** Reads a payload that must be empty or a JSON object of this shape. */
export const optional = <A, I>(schema: Schema.Codec<A, I>): Payload<A | undefined> =>
  decodePayload(schema, Result.succeed(undefined))

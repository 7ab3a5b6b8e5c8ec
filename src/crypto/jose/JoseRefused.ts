import * as Data from "effect/Data"

/* The refusals of a JWS or a key. Each has a sentence for the client. */

/** The text is not a flattened JWS (RFC 7515 section 7.2.2) in the form of RFC 8555 section 6.2. */
export class MalformedJws extends Data.TaggedError("MalformedJws")<{ readonly detail: string }> {}

/** Requests may not be signed with this `alg`. `algorithms` lists the accepted algorithms. */
export class BadSignatureAlgorithm extends Data.TaggedError("BadSignatureAlgorithm")<{
  readonly detail: string
  readonly algorithms: ReadonlyArray<string>
}> {}

/** The kind of key is not accepted, or the key is too weak. */
export class BadPublicKey extends Data.TaggedError("BadPublicKey")<{ readonly detail: string }> {}

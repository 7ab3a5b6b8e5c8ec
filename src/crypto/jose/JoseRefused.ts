import * as Data from "effect/Data"

/* The refusals of a JWS or a key. Each has a sentence for the client. */

/**
 * Returns the sentence of a refusal for a JWS that is only a part of the request, such as the inner JWS of a keyChange,
 * so that the client does not look for the fault in its own signature.
 */
export const inPart = (part: string, detail: string): string =>
  `${part}: ${detail.replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase())}`

/** The text is not a flattened JWS (RFC 7515 section 7.2.2) in the form of RFC 8555 section 6.2. */
export class MalformedJws extends Data.TaggedError("MalformedJws")<{ readonly detail: string }> {}

/** Requests may not be signed with this `alg`. `algorithms` lists the accepted algorithms. */
export class BadSignatureAlgorithm extends Data.TaggedError("BadSignatureAlgorithm")<{
  readonly detail: string
  readonly algorithms: ReadonlyArray<string>
}> {}

/** The kind of key is not accepted, or the key is too weak. */
export class BadPublicKey extends Data.TaggedError("BadPublicKey")<{ readonly detail: string }> {}

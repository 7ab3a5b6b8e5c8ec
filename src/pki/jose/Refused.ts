import { Data } from "effect"

/* Why a JWS or a key is refused, each with a sentence for the client. */

/** The text is no flattened JWS (RFC 7515 section 7.2.2) as RFC 8555 section 6.2 has it. */
export class MalformedJws extends Data.TaggedError("MalformedJws")<{ readonly detail: string }> {}

/** The `alg` is none that may be signed with. */
export class BadSignatureAlgorithm extends Data.TaggedError("BadSignatureAlgorithm")<{ readonly detail: string }> {}

/** The key is of no kind that is taken, or too weak. */
export class BadPublicKey extends Data.TaggedError("BadPublicKey")<{ readonly detail: string }> {}

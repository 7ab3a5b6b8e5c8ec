import * as Result from "effect/Result"
import type { AccountKey, SignatureAlgorithm } from "../../crypto/jose/Jwk.ts"
import { importJwk } from "../../crypto/jose/Jwk.ts"
import type { Jws } from "../../crypto/jose/Jws.ts"
import { checkAlgorithm, checkKey, objectFault, parseJws } from "../../crypto/jose/Jws.ts"
import type { AcmeError } from "../../domain/AcmeError.ts"
import { AccountDoesNotExist, Malformed } from "../../domain/AcmeError.ts"
import { AccountId, isId } from "../../domain/Id.ts"

/*
 * The checks of a signed request that need only the request. They are plain functions. The checks that need accounts or
 * nonces have to wait, so they are effects (Authenticate.ts). The numbers of the checks are rows of
 * docs/contribute/decisions/acme-surface.md, "Order of the checks". Row 1, the media type, is checked before the body
 * is read.
 */

/**
 * Why a request is refused. `reason` is the reason in the record jws_rejected. If there is no reason, that record is
 * not written.
 */
export interface Refusal {
  readonly reason?: string
  readonly error: AcmeError
}

/** The values that a check has read from a request, or the refusal. */
export type Checked<A> = Result.Result<A, Refusal>

const refused = (reason: string, error: AcmeError): Checked<never> => Result.fail({ reason, error })

const malformed = (reason: string, detail: string): Checked<never> => refused(reason, new Malformed({ detail }))

/** Returns what a resource answers that requires a JSON object and got another payload. */
export const payloadFault = (payload: Uint8Array): string =>
  payload.length === 0
    ? "The payload is empty; this resource requires a JSON object."
    : objectFault(payload, "The payload", "a JSON object in UTF-8")

/** Which member of the header a resource requires to name the key. With `either`, both are accepted. */
export type KeyMember = "jwk" | "kid" | "either"

/**
 * Performs checks 2 to 5. Check 2 decodes the flattened JWS and its protected header. Check 3 refuses a `crit`, because
 * the service implements no extension. Check 4 requires that `url` and the URL of the request are equal strings. Check
 * 5 requires that the header has exactly one of `jwk` and `kid`, and that this resource accepts that member.
 */
export const openJws = (
  { body, respelled, url }: {
    readonly body: Uint8Array
    readonly url: string
    readonly respelled: (url: string) => string
  },
  wanted: KeyMember
): Checked<Jws> => {
  const parsed = parseJws(body)
  if (Result.isFailure(parsed)) return refused("undecodable", parsed.failure)
  const { header } = parsed.success
  if (header.hasCrit) return malformed("crit_present", "No crit header extension is implemented.")
  if (header.url === undefined || respelled(header.url) !== url) {
    return malformed("url_mismatch", `The url header is not the URL this request was sent to, ${url}.`)
  }
  if (header.jwk !== undefined && header.kid !== undefined) {
    return malformed("key_and_kid", "The header has both jwk and kid.")
  }
  if (header.jwk === undefined && header.kid === undefined) {
    return malformed("key_or_kid_missing", "The header has neither jwk nor kid.")
  }
  return wanted === "either" || header[wanted] !== undefined
    ? Result.succeed(parsed.success)
    : malformed("key_not_allowed_here", `This resource takes requests signed with a ${wanted}.`)
}

/** The algorithms that a resource accepts. */
export type Algorithms = ReadonlyArray<SignatureAlgorithm>

/** Performs the part of check 6 that does not need the key: `alg` is supported. */
export const algorithmKnown = ({ header }: Jws, algorithms: Algorithms): Checked<void> =>
  Result.mapError(checkAlgorithm(header.alg, algorithms), (error) => ({ reason: "algorithm_unsupported", error }))

/** Performs check 6a: `alg` is supported. Returns the key that the `jwk` describes. */
export const keyOfJwk = (jws: Jws, algorithms: Algorithms): Checked<AccountKey> =>
  Result.flatMap(
    algorithmKnown(jws, algorithms),
    () => Result.mapError(importJwk(jws.header.jwk ?? {}), (error) => ({ reason: "key_unsupported", error }))
  )

/** Performs check 6: `alg` must be the key's own algorithm, and the resource must accept it. */
export const algorithmFits = ({ header }: Jws, key: AccountKey, algorithms: Algorithms): Checked<void> =>
  Result.mapError(checkKey(header.alg, key, algorithms), (error) => ({
    reason: error._tag === "BadPublicKey" ? "key_unsupported" : "algorithm_mismatch",
    error
  }))

/**
 * Performs check 6b, and returns the id in a `kid`. The `kid` must be the URL of an account of this profile. For any
 * other URL, even one of another profile or with an old base_url, no account exists here. A client that gets this
 * answer registers again.
 */
export const accountIdOfKid = (kid: string, prefix: string): Checked<AccountId> => {
  const id = kid.slice(prefix.length)
  if (kid.startsWith(prefix) && isId(id)) return Result.succeed(AccountId(id))
  return URL.canParse(kid)
    ? refused("kid_foreign", new AccountDoesNotExist())
    : malformed("kid_foreign", `The kid is not the URL of an account: ${prefix} and an id.`)
}

/** A function that reads a payload. An empty payload means a POST-as-GET (RFC 8555 section 6.3). */
export type Payload<P> = (bytes: Buffer) => Checked<P>

/** Reads the payload of a POST-as-GET, which must be empty. */
export const postAsGet: Payload<undefined> = (bytes) =>
  bytes.length === 0
    ? Result.succeed(undefined)
    : malformed("payload_not_empty", "A POST-as-GET must have an empty payload.")

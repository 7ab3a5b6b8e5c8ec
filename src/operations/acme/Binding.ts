import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { MacDigest } from "../../crypto/Digest.ts"
import { inPart } from "../../crypto/jose/JoseRefused.ts"
import type { AccountKey } from "../../crypto/jose/Jwk.ts"
import { importJwk } from "../../crypto/jose/Jwk.ts"
import type { Jws } from "../../crypto/jose/Jws.ts"
import { macDigestOf, parseObject, readJws, verifyMac } from "../../crypto/jose/Jws.ts"
import { ExternalAccountRequired, Malformed, Unauthorized } from "../../domain/AcmeError.ts"
import { isId } from "../../domain/Id.ts"
import { emit } from "../../domain/words/Log.ts"
import { hiddenIn } from "../../engine/HiddenText.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as eabKeys from "../../store/eab/EabKeys.ts"
import { accountsBoundBy } from "../../store/eab/EabScopes.ts"

/** The `reason` of `eab_rejected`. */
type Reason =
  | "missing"
  | "unknown_kid"
  | "revoked"
  | "expired"
  | "accounts_exhausted"
  | "other_profile"
  | "mac_mismatch"
  | "malformed"

// A text that cannot be one of our kids may be anything, even a secret that was entered by mistake. So such a text is
// not logged.
const rejected = (reason: Reason, kid: string | undefined) =>
  emit("eab_rejected", { kid: kid !== undefined && isId(kid) ? kid : undefined, reason })

/** Reads the binding and its kid. Fails if the form of the binding is wrong. */
const readBinding = (
  binding: unknown,
  key: AccountKey,
  url: string
): Result.Result<Jws & { readonly kid: string; readonly digest: MacDigest }, Malformed> =>
  Result.gen(function*() {
    const told = (detail: string) => new Malformed({ detail: inPart("externalAccountBinding", detail) })
    const refuse = (detail: string) => Result.fail(told(detail))
    const jws = yield* Result.mapError(readJws(binding), ({ detail }) => told(detail))
    const { header, payload } = jws
    const digest = macDigestOf(header.alg)
    if (digest === undefined) return yield* refuse("the alg must be HS256, HS384 or HS512.")
    if (header.hasCrit) return yield* refuse("no crit header extension is implemented.")
    if (header.nonce !== undefined) return yield* refuse("there must be no nonce.")
    if (header.jwk !== undefined || header.kid === undefined) {
      return yield* refuse("the header must have a kid and no jwk.")
    }
    if (header.url !== url) return yield* refuse("the url is not the one of the request.")
    const stated = importJwk(parseObject(payload) ?? {})
    return Result.isSuccess(stated) && stated.success.thumbprint === key.thumbprint
      ? { ...jws, kid: header.kid, digest }
      : yield* refuse("the payload is not the account key.")
  })

/** Returns why a credential may not bind another account, or undefined if it may. */
const exhaustion = Effect.fnUntraced(function*(
  { expiresAt, kid, maxAccounts }: eabKeys.Binding,
  now: number
) {
  if (expiresAt !== undefined && now >= expiresAt) return "expired"
  return maxAccounts !== undefined && (yield* accountsBoundBy(kid)) >= maxAccounts ? "accounts_exhausted" : undefined
})

/** Finds the credential that a client names, by our identifier or by that of another server. */
const named = Effect.fnUntraced(function*(kid: string, profile: string) {
  const own = isId(kid) ? yield* eabKeys.secretOf(kid) : undefined
  if (own !== undefined) return own
  return kid.length <= eabKeys.longestExternalKid && hiddenIn(kid) === undefined
    ? yield* eabKeys.secretOfExternal(kid, profile)
    : undefined
})

/** Refuses a new account if its credential may not bind another account. */
export const refuseExhausted = Effect.fnUntraced(function*(kid: string) {
  const credential = yield* eabKeys.secretOf(kid)
  const reason = credential && (yield* exhaustion(credential, yield* currentSeconds))
  if (reason === undefined) return
  yield* rejected(reason, kid)
  return yield* unaccepted
})

/**
 * Returns whether a credential may bind one more account. If it may, nothing can change that before the transaction
 * ends. Bindings of a credential with a limit of accounts are made one after the other.
 */
export const holdBinding = Effect.fnUntraced(function*(kid: string, now: number) {
  const isLimited = Effect.map(eabKeys.secretOf(kid), (found) => found?.maxAccounts !== undefined)
  if (yield* isLimited) yield* eabKeys.holdAlone(kid)
  if (!(yield* eabKeys.holdActive(kid))) return false
  // If a limit was set after the first read, registrations that run at the same time may exceed it. Later registrations
  // hold the credential alone.
  const credential = yield* eabKeys.secretOf(kid)
  return credential !== undefined && (yield* exhaustion(credential, now)) === undefined
})

const unaccepted = new Unauthorized({
  detail: "The external account binding does not match an accepted credential."
})

// The key with which the binding is checked if its kid is unknown, so that the check takes as long as for a known kid.
const nobodysSecret = Buffer.alloc(32)

/**
 * Returns the kid of the credential that binds the account (RFC 8555 section 7.3.4). The credential is read from the
 * database each time. The answer is the same for every fault of the kid or the MAC, but the log distinguishes the
 * faults.
 */
export const verifyBinding = Effect.fnUntraced(function*(
  { binding, key, profile, url }: {
    /** The member as it was posted. */
    readonly binding: unknown
    readonly key: AccountKey
    readonly profile: string
    /** The URL of newAccount. */
    readonly url: string
  }
) {
  if (binding === undefined) {
    yield* rejected("missing", undefined)
    return yield* new ExternalAccountRequired()
  }
  const read = readBinding(binding, key, url)
  if (Result.isFailure(read)) {
    yield* rejected("malformed", undefined)
    return yield* read.failure
  }
  const { digest, kid: given } = read.success
  const credential = yield* named(given, profile)
  const verifies = verifyMac(read.success, digest, credential?.secret ?? nobodysSecret)
  const reason = credential === undefined
    ? "unknown_kid"
    : !verifies
    ? "mac_mismatch"
    : credential.profile !== undefined && credential.profile !== profile
    ? "other_profile"
    : credential.status === "revoked"
    ? "revoked"
    : undefined
  if (reason === undefined && credential !== undefined) return credential.kid
  yield* rejected(reason ?? "unknown_kid", credential?.kid ?? given)
  return yield* unaccepted
})

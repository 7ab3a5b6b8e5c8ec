import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { tokenLength } from "../../crypto/Entropy.ts"
import type { AccountKey } from "../../crypto/jose/Jwk.ts"
import { certificateAlgorithms } from "../../crypto/jose/Jwk.ts"
import type { Jws } from "../../crypto/jose/Jws.ts"
import { checkKey, fingerprint, signatureFault, verifyJws } from "../../crypto/jose/Jws.ts"
import type { Account } from "../../domain/Account.ts"
import type { AcmeError } from "../../domain/AcmeError.ts"
import { AccountBlocked, AccountDoesNotExist, BadNonce, Unauthorized } from "../../domain/AcmeError.ts"
import type { ClientFacts } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { ReverseNames } from "../../engine/net/ReverseNames.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { AccountKeys } from "../../services/keys/AccountKeys.ts"
import type { Spent } from "../../services/nonce/Nonces.ts"
import { Nonces } from "../../services/nonce/Nonces.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import * as accounts from "../../store/AccountRows.ts"
import type { Caller } from "../Caller.ts"
import type { Algorithms, Checked, Payload } from "./JwsChecks.ts"
import { accountIdOfKid, algorithmFits, algorithmKnown, keyOfJwk, openJws, postAsGet } from "./JwsChecks.ts"

/*
 * The checks of a signed request, in the order of docs/contribute/decisions/acme-surface.md, "Order of the checks".
 * JwsChecks.ts has the checks that need only the request. This file combines those checks with accounts and nonces.
 */

/** A POST to a resource of a profile, with the values that its signed header must match. */
export interface SignedRequest {
  readonly profile: ProfileConfig
  /** The URL to which the request was sent. The `url` header must be equal to it. */
  readonly url: string
  /** The text with which the URL of every account of the profile begins. */
  readonly accountPrefix: string
  /** Returns a URL that a client has stored or signed in the one spelling that the service writes. */
  readonly respelled: (url: string) => string
  readonly body: Uint8Array
  /** The facts about the sender: address, agent and request id. */
  readonly sender: ClientFacts
}

/** A request signed by an account. */
export interface ByAccount<P> {
  readonly caller: Caller
  readonly account: Account
  readonly payload: P
}

/** A request signed with the key in its header. */
export interface ByKey<P> {
  readonly key: AccountKey
  readonly client: ClientFacts
  readonly payload: P
}

/** A request signed by an account, or with the key in its header. */
export interface ByEither<P> {
  readonly signer: { readonly account: Account } | { readonly key: AccountKey }
  readonly client: ClientFacts
  readonly payload: P
}

/** Returns what a check has found. If the check refuses the request, logs the refusal and fails. */
const accepted = <A>(checked: Checked<A>): Effect.Effect<A, AcmeError> => {
  if (Result.isSuccess(checked)) return Effect.succeed(checked.success)
  const { error, reason } = checked.failure
  return reason === undefined
    ? Effect.fail(error)
    : Effect.andThen(emit("jws_rejected", { reason }), Effect.fail(error))
}

/** Performs checks 6 and 7: the key may be used with this algorithm, and the signature is valid. */
const verified = (
  jws: Jws,
  key: AccountKey,
  algorithms: Algorithms,
  account: Account | undefined
): Effect.Effect<AccountKey, AcmeError> => {
  const fits = algorithmFits(jws, key, algorithms)
  if (Result.isFailure(fits)) return accepted<never>(Result.fail(fits.failure))
  if (verifyJws(jws, key)) return Effect.succeed(key)
  return Effect.andThen(
    emit("jws_signature_invalid", { account_id: account?.id, key_fp: fingerprint(key.spki) }),
    new Unauthorized({ detail: `The signature ${signatureFault(jws, key)}.` })
  )
}

/** Returns whether checks 6 and 7 succeed with a key. An algorithm that fits an accepted key is supported. */
const verifies = (jws: Jws, key: AccountKey, algorithms: Algorithms): boolean =>
  Result.isSuccess(checkKey(jws.header.alg, key, algorithms)) && verifyJws(jws, key)

/** Logs and refuses a nonce that is not fresh. */
const refuseUnlessFresh = (nonce: string | undefined, verdict: Spent | "missing"): Effect.Effect<void, BadNonce> => {
  if (verdict === "fresh") return Effect.void
  const nonce_fp = nonce === undefined ? undefined : fingerprint(nonce)
  // An unknown value that has the form of our nonces was used before, or was swept.
  return Effect.andThen(
    nonce_fp !== undefined && nonce?.length === tokenLength && verdict === "unknown"
      ? emit("nonce_replayed", { nonce_fp })
      : emit("nonce_rejected", { reason: verdict, nonce_fp }),
    new BadNonce()
  )
}

/** Performs check 8: the nonce is fresh and unused. Only a request that passed all earlier checks uses up a nonce. */
const nonceIsFresh = Effect.fnUntraced(function*(nonce: string | undefined) {
  yield* refuseUnlessFresh(nonce, nonce === undefined ? "missing" : yield* (yield* Nonces).spend(nonce))
})

/**
 * Returns the facts about the client. The client's reverse name is looked up only if the request may write something. A
 * request without a payload writes nothing.
 */
const clientOf = Effect.fnUntraced(function*({ sender }: SignedRequest, writes: boolean) {
  const ptr = writes ? yield* (yield* ReverseNames).of(sender.ip) : undefined
  return ptr === undefined ? sender : { ...sender, ptr }
})

const seenEverySeconds = 60

/**
 * Returns the facts about the client. Stores the time of the account's latest authenticated request, at most once a
 * minute, or at once if the address has changed.
 */
const seen = (request: SignedRequest, jws: Jws, account: Account, now: number) => {
  const { lastSeenAt, lastSeenIp } = account
  const isDue = lastSeenAt === undefined || now - lastSeenAt >= seenEverySeconds || lastSeenIp !== request.sender.ip
  const client = clientOf(request, isDue || jws.payload.length > 0)
  return isDue ? Effect.tap(client, (facts) => accounts.recordSeen(account.id, now, facts)) : client
}

/**
 * Performs checks 6b to 8: first the account that the kid names at this profile, whatever its status, then the
 * account's key, then the nonce. If the signature verifies with the last known key of the account, the account and the
 * nonce need only one round trip. The statement of that round trip spends the nonce only if the account still has this
 * key, so the order of the checks does not change.
 */
const accountSigned = Effect.fnUntraced(function*(jws: Jws, { accountPrefix, profile, respelled }: SignedRequest) {
  const { kid = "", nonce } = jws.header
  const accountId = yield* accepted(accountIdOfKid(respelled(kid), accountPrefix))
  const { algorithms } = profile.account
  const keys = yield* AccountKeys
  const cached = keys.cached(accountId)
  if (cached !== undefined && nonce !== undefined && verifies(jws, cached, algorithms)) {
    const { spendSigned } = yield* Nonces
    const signed = yield* spendSigned({ nonce, profile: profile.name, accountId, pubkey: cached.spki })
    if (signed !== undefined) {
      yield* refuseUnlessFresh(nonce, signed.spent)
      return { account: signed.account, key: cached }
    }
  }
  const account = yield* accounts.find(profile.name, accountId)
  if (account === undefined) return yield* new AccountDoesNotExist()
  yield* accepted(algorithmKnown(jws, algorithms))
  const key = yield* verified(jws, keys.of(account), algorithms, account)
  yield* nonceIsFresh(nonce)
  return { account, key }
})

/** Performs checks 6a to 8: the key in the jwk, then the nonce. */
const keySigned = (jws: Jws, algorithms: Algorithms) =>
  Effect.tap(
    Effect.flatMap(accepted(keyOfJwk(jws, algorithms)), (key) => verified(jws, key, algorithms, undefined)),
    () => nonceIsFresh(jws.header.nonce)
  )

/** Refuses an account that is not valid (row 9 of docs/contribute/decisions/acme-surface.md, "Order of the checks"). */
export const refuseUnlessValid = (account: Account): Effect.Effect<void, Unauthorized> =>
  account.status === "valid"
    ? Effect.void
    : Effect.andThen(
      emit("account_request_refused", { account_id: account.id, reason: account.status }),
      new Unauthorized({ detail: `The account is ${account.status}.` })
    )

/**
 * Refuses a caller whose account an operator has blocked. Only requests that lead to a certificate are refused: a
 * blocked client still reads, deactivates and revokes (docs/configure/policy.md, "Blocked accounts").
 */
export const refuseIfBlocked = (
  { accountId, blockedAt }: Pick<Caller, "accountId" | "blockedAt">
): Effect.Effect<void, AccountBlocked> =>
  blockedAt === undefined
    ? Effect.void
    : Effect.andThen(
      emit("account_request_refused", { account_id: accountId, reason: "blocked" }),
      new AccountBlocked({ since: blockedAt })
    )

/** Authenticates a request that an account of this profile signed. */
export const byKid = Effect.fnUntraced(function*<P>(request: SignedRequest, read: Payload<P>) {
  const jws = yield* accepted(openJws(request, "kid"))
  const { account, key } = yield* accountSigned(jws, request)
  yield* refuseUnlessValid(account)
  const caller: Caller = {
    profile: request.profile,
    accountId: account.id,
    thumbprint: key.thumbprint,
    pubkey: key.spki,
    eabKid: account.eabKid,
    blockedAt: account.blockedAt,
    client: yield* seen(request, jws, account, yield* currentSeconds)
  }
  return { caller, account, payload: yield* accepted(read(jws.payload)) } satisfies ByAccount<P>
})

/** Authenticates a request that was signed with the key in its header. */
export const byJwk = Effect.fnUntraced(function*<P>(request: SignedRequest, read: Payload<P>) {
  const jws = yield* accepted(openJws(request, "jwk"))
  const key = yield* keySigned(jws, request.profile.account.algorithms)
  const client = yield* clientOf(request, true)
  return { key, client, payload: yield* accepted(read(jws.payload)) } satisfies ByKey<P>
})

/**
 * Authenticates a request that was signed by an account of this profile, whatever its status, or with the key in its
 * header. Only revokeCert uses this function. The key in the header belongs to a certificate, so every kind of key that
 * can be certified is accepted (RFC 8555 section 7.6).
 */
export const byEither = Effect.fnUntraced(function*<P>(request: SignedRequest, read: Payload<P>) {
  const jws = yield* accepted(openJws(request, "either"))
  const signer = jws.header.jwk === undefined
    ? yield* accountSigned(jws, request)
    : { key: yield* keySigned(jws, certificateAlgorithms()) }
  const client = "account" in signer
    ? yield* seen(request, jws, signer.account, yield* currentSeconds)
    : yield* clientOf(request, true)
  return { signer, client, payload: yield* accepted(read(jws.payload)) } satisfies ByEither<P>
})

/**
 * Authenticates a POST-as-GET for a resource that anyone may also read without a signature. The request is signed by a
 * valid account of this profile, or with the key in its header. A key in the header is not stored.
 */
export const byAnybody = Effect.fnUntraced(function*(request: SignedRequest) {
  const jws = yield* accepted(openJws(request, "either"))
  const signer = jws.header.jwk === undefined
    ? yield* accountSigned(jws, request)
    : yield* Effect.as(keySigned(jws, request.profile.account.algorithms), undefined)
  if (signer !== undefined) {
    yield* refuseUnlessValid(signer.account)
    yield* seen(request, jws, signer.account, yield* currentSeconds)
  }
  yield* accepted(postAsGet(jws.payload))
})

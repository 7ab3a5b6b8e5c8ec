import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { AccountKey } from "../../crypto/jose/Jwk.ts"
import { signatureAlgorithms } from "../../crypto/jose/Jwk.ts"
import type { Jws } from "../../crypto/jose/Jws.ts"
import { fingerprint, signatureFault, verifyJws } from "../../crypto/jose/Jws.ts"
import type { Account } from "../../domain/Account.ts"
import type { AcmeError } from "../../domain/AcmeError.ts"
import { AccountDoesNotExist, BadNonce, Unauthorized } from "../../domain/AcmeError.ts"
import type { Request } from "../../engine/http/Message.ts"
import { ReverseNames } from "../../engine/net/ReverseNames.ts"
import type { ClientFacts } from "../../engine/queue/Job.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { emit } from "../../engine/telemetry/EventLog.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { refuseUnlessValid } from "../../operations/acme/Accounts.ts"
import type { Caller } from "../../operations/Caller.ts"
import { AccountKeys } from "../../services/keys/AccountKeys.ts"
import { Nonces } from "../../services/nonce/Nonces.ts"
import * as accounts from "../../store/AccountRows.ts"
import type { Endpoint } from "./Endpoint.ts"
import type { Algorithms, Checked, KeyMember, Payload } from "./RequestChecks.ts"
import { accountIdOfKid, algorithmFits, algorithmKnown, keyOfJwk, openJws, postAsGet } from "./RequestChecks.ts"

/** A POST whose body has been read. */
export interface Posted {
  readonly endpoint: Endpoint
  readonly request: Request
  readonly body: Buffer
  /** The record id of the path, if the route has one. It is not yet known to be a UUID. */
  readonly id: string
}

/** The input of a handler for requests signed by an account. */
export interface BySomeAccount<P> extends Posted {
  readonly caller: Caller
  readonly account: Account
  readonly payload: P
}

/** The input of newAccount. */
export interface BySomeKey<P> extends Posted {
  readonly key: AccountKey
  readonly client: ClientFacts
  readonly payload: P
}

/** The input of revokeCert. */
export interface BySomeone<P> extends Posted {
  readonly signer: { readonly account: Account } | { readonly key: AccountKey }
  readonly client: ClientFacts
  readonly payload: P
}

/** The URL a request was sent to; the `url` header must equal it. */
export const urlOf = ({ endpoint, request }: Pick<Posted, "endpoint" | "request">): string =>
  endpoint.base.slice(0, -`/profile/${endpoint.profile.name}`.length) + request.target

/** What a check has found; a refusal is recorded. */
const accepted = <A>(checked: Checked<A>): Effect.Effect<A, AcmeError> => {
  if (Result.isSuccess(checked)) return Effect.succeed(checked.success)
  const { error, reason } = checked.failure
  return reason === undefined
    ? Effect.fail(error)
    : Effect.andThen(emit("jws_rejected", { reason }), Effect.fail(error))
}

/** Checks 2 to 5. */
const opened = (posted: Posted, wanted: KeyMember) => accepted(openJws(posted.body, urlOf(posted), wanted))

/** 6b: the account a `kid` names, at this profile. */
const accountOfKid = (
  { header }: Jws,
  { endpoint }: Posted
): Effect.Effect<Account, AcmeError | StorageFailed, Database> => {
  const checked = accountIdOfKid(header.kid ?? "", endpoint.account(""))
  if (Result.isFailure(checked)) return accepted<never>(Result.fail(checked.failure))
  return Effect.flatMap(
    accounts.find(endpoint.profile.name, checked.success),
    (account) => account === undefined ? new AccountDoesNotExist() : Effect.succeed(account)
  )
}

/** 6 and 7: the key takes such signatures, and this one verifies. */
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

/** 8: the nonce is fresh and unused. Only a request that passed all earlier checks uses up a nonce. */
const nonceIsFresh = (nonce: string | undefined) =>
  nonce === undefined
    ? staleNonce("missing", nonce)
    : Nonces.use(({ spend }) =>
      Effect.flatMap(spend(nonce), (verdict) => verdict === "fresh" ? Effect.void : staleNonce(verdict, nonce))
    )

const staleNonce = (
  reason: "missing" | "unknown" | "expired",
  nonce: string | undefined
): Effect.Effect<never, BadNonce> => {
  const nonce_fp = nonce === undefined ? undefined : fingerprint(nonce)
  // An unknown value of our own form was used before, or swept.
  const record = nonce_fp !== undefined && nonce?.length === ourNonceLength && reason === "unknown"
    ? emit("nonce_replayed", { nonce_fp })
    : emit("nonce_rejected", { reason, nonce_fp })
  return Effect.andThen(record, new BadNonce())
}

const ourNonceLength = 43

/**
 * The facts of the client. Its reverse name is looked up only if the request may write something: a request without a
 * payload does not.
 */
const clientOf = ({ request }: Posted, writes: boolean): Effect.Effect<ClientFacts, never, ReverseNames> => {
  const { clientIp: ip, id: request_id, userAgent: user_agent } = request
  const facts = { ip, user_agent, request_id }
  if (!writes) return Effect.succeed(facts)
  return ReverseNames.use((names) => Effect.map(names.of(ip), (ptr) => ptr === undefined ? facts : { ...facts, ptr }))
}

const seenEverySeconds = 60

/**
 * The facts of the client. The account's last authenticated request is recorded once a minute, or at once if its
 * address has changed.
 */
const seen = (posted: Posted, jws: Jws, account: Account, now: number) => {
  const isDue = isSeenDue(posted, account, now)
  const client = clientOf(posted, isDue || jws.payload.length > 0)
  return isDue ? Effect.tap(client, (facts) => accounts.recordSeen(account.id, now, facts)) : client
}

const isSeenDue = ({ request }: Posted, { lastSeenAt, lastSeenIp }: Account, now: number): boolean =>
  lastSeenAt === undefined || now - lastSeenAt >= seenEverySeconds || lastSeenIp !== request.clientIp

interface AccountSigned {
  readonly account: Account
  readonly key: AccountKey
}

/** Checks 6b to 7: the account of the kid, whatever its status, and its key. */
const accountSigned = (
  jws: Jws,
  posted: Posted
): Effect.Effect<AccountSigned, AcmeError | StorageFailed, AccountKeys | Database> =>
  Effect.flatMap(accountOfKid(jws, posted), (account): Effect.Effect<AccountSigned, AcmeError, AccountKeys> => {
    const { algorithms } = posted.endpoint.profile.account
    const known = algorithmKnown(jws, algorithms)
    if (Result.isFailure(known)) return accepted<never>(Result.fail(known.failure))
    return AccountKeys.use((keys) =>
      Effect.map(verified(jws, keys.get(account.pubkey), algorithms, account), (key) => ({ account, key }))
    )
  })

/** Checks 6a to 7: the key of the jwk. */
const keySigned = (jws: Jws, algorithms: Algorithms) =>
  Effect.flatMap(accepted(keyOfJwk(jws, algorithms)), (key) => verified(jws, key, algorithms, undefined))

/** A request signed by an account of this profile. */
export const byKid = Effect.fnUntraced(function*<P>(posted: Posted, read: Payload<P>) {
  const jws = yield* opened(posted, "kid")
  const { account, key } = yield* accountSigned(jws, posted)
  yield* nonceIsFresh(jws.header.nonce)
  yield* refuseUnlessValid(account)
  const client = yield* seen(posted, jws, account, yield* currentSeconds)
  const caller: Caller = {
    profile: posted.endpoint.profile,
    accountId: account.id,
    thumbprint: key.thumbprint,
    pubkey: key.spki,
    client
  }
  const signed: BySomeAccount<P> = { ...posted, caller, account, payload: yield* accepted(read(jws.payload)) }
  return signed
})

/** A request signed by the key it carries. */
export const byJwk = Effect.fnUntraced(function*<P>(posted: Posted, read: Payload<P>) {
  const jws = yield* opened(posted, "jwk")
  const key = yield* keySigned(jws, posted.endpoint.profile.account.algorithms)
  yield* nonceIsFresh(jws.header.nonce)
  const client = yield* clientOf(posted, true)
  const signed: BySomeKey<P> = { ...posted, key, client, payload: yield* accepted(read(jws.payload)) }
  return signed
})

/**
 * A request signed by an account of this profile, of any status, or by the key it carries. Only revokeCert uses it: that key is one
 * of a certificate, so every kind that is certified is taken (RFC 8555 section 7.6).
 */
export const byEither = Effect.fnUntraced(function*<P>(posted: Posted, read: Payload<P>) {
  const jws = yield* opened(posted, "either")
  const signer = jws.header.jwk === undefined
    ? yield* accountSigned(jws, posted)
    : { key: yield* keySigned(jws, signatureAlgorithms) }
  yield* nonceIsFresh(jws.header.nonce)
  const client = "account" in signer
    ? yield* seen(posted, jws, signer.account, yield* currentSeconds)
    : yield* clientOf(posted, true)
  const signed: BySomeone<P> = {
    ...posted,
    signer,
    client,
    payload: yield* accepted(read(jws.payload))
  }
  return signed
})

/**
 * A POST-as-GET of what anybody may read without a signature too: signed by a valid account of this profile, or by the key it carries,
 * of which nothing is kept.
 */
export const byAnybody = Effect.fnUntraced(function*(posted: Posted) {
  const jws = yield* opened(posted, "either")
  const signer = jws.header.jwk === undefined
    ? yield* accountSigned(jws, posted)
    : yield* Effect.as(keySigned(jws, posted.endpoint.profile.account.algorithms), undefined)
  yield* nonceIsFresh(jws.header.nonce)
  if (signer !== undefined) {
    yield* refuseUnlessValid(signer.account)
    yield* seen(posted, jws, signer.account, yield* currentSeconds)
  }
  yield* accepted(postAsGet(jws.payload))
  return posted
})

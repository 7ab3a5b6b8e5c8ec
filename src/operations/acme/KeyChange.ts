import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { sameBytes } from "../../crypto/asn1/DerReader.ts"
import { BadPublicKey, BadSignatureAlgorithm, inPart } from "../../crypto/jose/JoseRefused.ts"
import type { AccountKey } from "../../crypto/jose/Jwk.ts"
import { importJwk } from "../../crypto/jose/Jwk.ts"
import {
  checkAlgorithm,
  checkKey,
  fingerprint,
  parseObject,
  readJws,
  signatureFault,
  verifyJws
} from "../../crypto/jose/Jws.ts"
import type { Account } from "../../domain/Account.ts"
import type { AcmeError } from "../../domain/AcmeError.ts"
import { KeyInUse, Malformed, Unauthorized } from "../../domain/AcmeError.ts"
import { emit } from "../../domain/words/Log.ts"
import { AccountKeys } from "../../services/keys/AccountKeys.ts"
import * as accounts from "../../store/AccountRows.ts"
import * as audit from "../../store/AuditRows.ts"
import { changing } from "../../store/AuditRows.ts"
import type { Caller } from "../Caller.ts"
import { auditFacts } from "../Caller.ts"
import { refuseUnlessValid } from "./Authenticate.ts"
import { payloadFault } from "./JwsChecks.ts"
import { faultOf } from "./NewKey.ts"

/** A keyChange request as it was posted: the inner JWS, and the two URLs that the inner JWS must contain. */
export interface KeyChange {
  /** The payload, which is the inner JWS. */
  readonly payload: Uint8Array
  readonly url: string
  readonly accountUrl: string
  /** Returns a URL of the client in the spelling of the other two. */
  readonly respelled: (url: string) => string
}

/** Why a rollover was refused: the `reason` of `key_change_rejected`. */
type Reason =
  | "bad_inner_jws"
  | "url_mismatch"
  | "bad_key"
  | "bad_signature"
  | "account_mismatch"
  | "old_key_mismatch"
  | "key_in_use"

type Refusal = readonly [reason: Reason, error: AcmeError]

/** Returns a sentence about the inner JWS. The JWS of the request itself has already been accepted. */
const inner = (detail: string): string => inPart("inner JWS", detail)

/** Returns a refusal of the algorithm or the key of the inner JWS. */
const badKey = (error: BadPublicKey | BadSignatureAlgorithm): Result.Result<never, Refusal> => {
  const detail = inner(error.detail)
  return Result.fail([
    "bad_key",
    error._tag === "BadPublicKey"
      ? new BadPublicKey({ detail })
      : new BadSignatureAlgorithm({ detail, algorithms: error.algorithms })
  ])
}

const malformed = (reason: Reason, detail: string): Result.Result<never, Refusal> =>
  Result.fail([reason, new Malformed({ detail })])

const Payload = Schema.decodeUnknownOption(Schema.Struct({
  account: Schema.String,
  oldKey: Schema.Record(Schema.String, Schema.Unknown)
}))

/**
 * Returns the new key if the inner JWS proves that the holder of that key wants to use it for this account (RFC 8555
 * section 7.3.5).
 */
const provenKey = (
  { accountUrl, payload: posted, respelled, url }: KeyChange,
  caller: Caller
): Result.Result<AccountKey, Refusal> => {
  const envelope = parseObject(posted)
  if (envelope === undefined) return malformed("bad_inner_jws", payloadFault(posted))
  const parsed = readJws(envelope)
  if (Result.isFailure(parsed)) return malformed("bad_inner_jws", inner(parsed.failure.detail))
  const { header, payload } = parsed.success
  if (header.hasCrit) return malformed("bad_inner_jws", inner("No crit header extension is implemented."))
  if (header.jwk === undefined || header.kid !== undefined) {
    return malformed("bad_inner_jws", "The inner JWS must have the new key as jwk, and no kid.")
  }
  if (header.nonce !== undefined) return malformed("bad_inner_jws", "The inner JWS must have no nonce.")
  if (header.url === undefined || respelled(header.url) !== url) {
    return malformed("url_mismatch", "The inner url is not the outer one.")
  }
  const { algorithms } = caller.profile.account
  const known = checkAlgorithm(header.alg, algorithms)
  if (Result.isFailure(known)) return badKey(known.failure)
  const key = importJwk(header.jwk)
  if (Result.isFailure(key)) return badKey(key.failure)
  const fits = checkKey(header.alg, key.success, algorithms)
  if (Result.isFailure(fits)) return badKey(fits.failure)
  if (!verifyJws(parsed.success, key.success)) {
    const fault = signatureFault(parsed.success, key.success)
    return Result.fail(["bad_signature", new Unauthorized({ detail: `The inner signature ${fault}.` })])
  }
  const stated = Payload(parseObject(payload))
  if (stated._tag === "None") {
    return malformed("bad_inner_jws", "The inner payload must have account (a string) and oldKey (an object).")
  }
  const { account, oldKey } = stated.value
  if (respelled(account) !== accountUrl) return malformed("account_mismatch", "The inner account is not the outer kid.")
  const old = importJwk(oldKey)
  return Result.isSuccess(old) && old.success.thumbprint === caller.thumbprint
    ? Result.succeed(key.success)
    : malformed("old_key_mismatch", "oldKey is not the key of the account.")
}

/**
 * Replaces the account's key. The write succeeds only if the old key is still stored. So only one of two concurrent
 * rollovers succeeds. If nothing is in the way of a failed write any more, it is tried once more.
 */
export const rollOver = Effect.fnUntraced(function*(caller: Caller, account: Account, request: KeyChange) {
  const refused = ([reason, error]: Refusal) =>
    Effect.andThen(emit("key_change_rejected", { account_id: account.id, reason }), Effect.fail(error))
  const proven = provenKey(request, caller)
  if (Result.isFailure(proven)) return yield* refused(proven.failure)
  const key = proven.success
  const fault = yield* faultOf(key.spki, account.id)
  if (fault !== undefined) return yield* refused(["bad_key", new BadPublicKey({ detail: fault.detail })])
  const owner = accounts.findByKey(account.profile, key.spki)
  const facts = { key_fp: fingerprint(key.spki), previous_key_fp: fingerprint(account.pubkey) }
  const row = audit.insert({
    event: "account_key_changed",
    actorKind: "acme",
    actorId: account.id,
    accountId: account.id,
    ...auditFacts(account.profile, caller.client),
    detail: facts
  })
  const write = changing(
    accounts.changeKey({ id: account.id, profile: account.profile, oldKey: account.pubkey, newKey: key.spki }),
    row
  ).pipe(
    // The write fails if another account took the key after the look-up. It also fails here if the write succeeded but
    // its answer was lost.
    Effect.catchTag("StorageFailed", (error) =>
      Effect.flatMap(owner, (taken) => {
        if (taken === undefined) return error
        const isDone = taken.id === account.id && !sameBytes(taken.pubkey, account.pubkey)
        return Effect.succeed(isDone ? taken : undefined)
      }))
  )
  // Returns why the write changed nothing, or undefined if nothing is in its way any more: the account that had the new
  // key may have changed to another one since the write.
  const obstacle = Effect.gen(function*() {
    const taken = yield* owner
    if (taken !== undefined) return ["key_in_use", new KeyInUse({ accountId: taken.id })] satisfies Refusal
    const current = yield* accounts.find(account.profile, account.id)
    if (current !== undefined) yield* refuseUnlessValid(current)
    if (current !== undefined && sameBytes(current.pubkey, account.pubkey)) return undefined
    const detail = "The account key has changed in the meantime."
    return ["old_key_mismatch", new Malformed({ detail })] satisfies Refusal
  })
  const first = yield* write
  const hindrance = first === undefined ? yield* obstacle : undefined
  if (hindrance !== undefined) return yield* refused(hindrance)
  const changed = first ?? (yield* write)
  if (changed === undefined) {
    const detail = "Another account had the new key until now; send the request again."
    return yield* refused((yield* obstacle) ?? ["key_in_use", new Malformed({ detail })])
  }
  const keys = yield* AccountKeys
  keys.keep(account.id, key)
  yield* emit("key_change_completed", { account_id: account.id, ...facts })
  return changed
}, Effect.uninterruptible)

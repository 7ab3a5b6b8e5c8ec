import { Effect, Either, Schema } from "effect"
import type { Account } from "../../domain/Account.ts"
import type { AcmeError } from "../../domain/AcmeError.ts"
import { AccountDoesNotExist, BadNonce, Malformed, Unauthorized } from "../../domain/AcmeError.ts"
import { AccountId, isId } from "../../domain/Id.ts"
import type { Request } from "../../kernel/http/Message.ts"
import { ReverseNames } from "../../kernel/net/ReverseNames.ts"
import type { ClientFacts } from "../../kernel/queue/Job.ts"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import { currentSeconds } from "../../kernel/Time.ts"
import { refuseUnlessValid } from "../../operations/account/Accounts.ts"
import type { Caller } from "../../operations/Caller.ts"
import type { AccountKey } from "../../pki/jose/Jwk.ts"
import { importJwk } from "../../pki/jose/Jwk.ts"
import type { Jws } from "../../pki/jose/Jws.ts"
import { checkAlgorithm, fingerprint, parseJws, parseObject, verifyJws } from "../../pki/jose/Jws.ts"
import { BadSignatureAlgorithm } from "../../pki/jose/Refused.ts"
import { AccountKeys } from "../../services/keys/AccountKeys.ts"
import { Nonces } from "../../services/nonce/Nonces.ts"
import * as accounts from "../../store/Accounts.ts"
import type { Endpoint } from "./Endpoint.ts"
import { misfit } from "./Misfit.ts"

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

const rejected = (reason: string, error: AcmeError) =>
  Effect.zipRight(emit("jws_rejected", { reason }), Effect.fail(error))

const malformed = (reason: string, detail: string) => rejected(reason, new Malformed({ detail }))

// The numbers are rows of docs/decisions/acme-surface.md, "Order of the checks". Row 1, the media type, is checked
// before the body is read.

/** 2: the flattened JWS and its protected header can be decoded. */
const decodes = (posted: Posted) => {
  const jws = parseJws(posted.body)
  return Either.isRight(jws) ? Effect.succeed(jws.right) : rejected("undecodable", jws.left)
}

/** 3: no `crit`; the service implements no extension. */
const hasNoCrit = ({ header }: Jws) =>
  header.hasCrit ? malformed("crit_present", "No crit header extension is implemented.") : Effect.void

/** The URL a request was sent to; the `url` header must equal it. */
export const urlOf = ({ endpoint, request }: Pick<Posted, "endpoint" | "request">): string =>
  endpoint.base.slice(0, -`/profile/${endpoint.profile.name}`.length) + request.target

/** 4: `url` equals the URL of the request, as a string. */
const namesThisUrl = ({ header }: Jws, posted: Posted) => {
  const url = urlOf(posted)
  return header.url === url
    ? Effect.void
    : malformed("url_mismatch", `The url header is not the URL this request was sent to, ${url}.`)
}

/** 5: exactly one of `jwk` and `kid`, and the one that this endpoint requires. */
const hasOneKey = ({ header }: Jws, wanted: "jwk" | "kid") => {
  if (header.jwk !== undefined && header.kid !== undefined) {
    return malformed("key_and_kid", "The header has both jwk and kid.")
  }
  if (header.jwk === undefined && header.kid === undefined) {
    return malformed("key_or_kid_missing", "The header has neither jwk nor kid.")
  }
  return header[wanted] === undefined
    ? malformed("key_not_allowed_here", `This resource takes requests signed with a ${wanted}.`)
    : Effect.void
}

/** 6, before the key is read: `alg` is supported. */
const algorithmKnown = ({ header }: Jws) => {
  const checked = checkAlgorithm(header.alg)
  return Either.isRight(checked) ? Effect.void : rejected("algorithm_unsupported", checked.left)
}

/** 6: the key's own algorithm decides; `alg` must agree with it. */
const algorithmFits = ({ header }: Jws, { algorithm }: AccountKey) =>
  header.alg === algorithm
    ? Effect.void
    : rejected("algorithm_mismatch", new BadSignatureAlgorithm({ detail: `The key takes ${algorithm} signatures.` }))

/** 6a: the key a `jwk` describes. */
const keyOfJwk = ({ header }: Jws) => {
  const key = importJwk(header.jwk ?? {})
  return Either.isRight(key) ? Effect.succeed(key.right) : rejected("key_unsupported", key.left)
}

/** 6b: the account a `kid` names, at this profile. */
const accountOfKid = ({ header }: Jws, { endpoint }: Posted) => {
  const kid = header.kid ?? ""
  const prefix = endpoint.account("")
  const id = kid.slice(prefix.length)
  if (!kid.startsWith(prefix) || !isId(id)) {
    return malformed("kid_foreign", `The kid is not an account URL of this profile: ${prefix} and an id.`)
  }
  return Effect.flatMap(
    accounts.find(endpoint.profile.name, AccountId(id)),
    (account) => account === undefined ? new AccountDoesNotExist() : Effect.succeed(account)
  )
}

/** 7: the signature verifies. */
const signatureVerifies = (jws: Jws, key: AccountKey, account: Account | undefined) =>
  verifyJws(jws, key)
    ? Effect.void
    : Effect.zipRight(
      emit("jws_signature_invalid", { account_id: account?.id, key_fp: fingerprint(key.spki) }),
      new Unauthorized({ detail: "The signature does not verify." })
    )

/** 8: the nonce is fresh and unused. Only a request that passed all earlier checks uses up a nonce. */
const nonceIsFresh = Effect.fnUntraced(function*({ header: { nonce } }: Jws) {
  if (nonce === undefined) {
    yield* emit("nonce_rejected", { reason: "missing", nonce_fp: undefined })
    return yield* new BadNonce()
  }
  const nonces = yield* Nonces
  const verdict = yield* nonces.spend(nonce)
  if (verdict === "fresh") return
  const nonce_fp = fingerprint(nonce)
  // An unknown value of our own form was used before, or swept.
  yield* nonce.length === ourNonceLength && verdict === "unknown"
    ? emit("nonce_replayed", { nonce_fp })
    : emit("nonce_rejected", { reason: verdict, nonce_fp })
  return yield* new BadNonce()
})

const ourNonceLength = 43

/**
 * The facts of the client. Its reverse name is looked up only if the request may write something: a request without a
 * payload does not.
 */
const clientOf = ({ request }: Posted, writes: boolean): Effect.Effect<ClientFacts, never, ReverseNames> => {
  const { clientIp: ip, id: request_id, userAgent: user_agent } = request
  const facts = { ip, user_agent, request_id }
  if (!writes) return Effect.succeed(facts)
  return Effect.flatMap(
    ReverseNames,
    (names) => Effect.map(names.of(ip), (ptr) => ptr === undefined ? facts : { ...facts, ptr })
  )
}

const seenEverySeconds = 60

/** The facts of the client. The account's last authenticated request is recorded at most once a minute. */
const seen = Effect.fnUntraced(function*(posted: Posted, jws: Jws, account: Account) {
  const now = yield* currentSeconds
  const isDue = account.lastSeenAt === undefined || now - account.lastSeenAt >= seenEverySeconds
  const client = yield* clientOf(posted, isDue || jws.payload.length > 0)
  if (isDue) yield* accounts.recordSeen(account.id, now, client)
  return client
})

/** A reader of a payload; an empty payload is a POST-as-GET (RFC 8555 section 6.3). */
export type Payload<P> = (bytes: Buffer) => Effect.Effect<P, AcmeError>

/** The bytes as they are, for an operation that reads them itself. */
export const raw: Payload<Buffer> = Effect.succeed

/** The payload must be empty. */
export const postAsGet: Payload<undefined> = (bytes) =>
  bytes.length === 0
    ? Effect.succeed(undefined)
    : malformed("payload_not_empty", "A POST-as-GET must have an empty payload.")

const decodePayload = <A, I>(schema: Schema.Schema<A, I>): (bytes: Buffer) => Effect.Effect<A, AcmeError> => {
  const decode = Schema.decodeUnknownEither(schema)
  return (bytes) => {
    const object = parseObject(bytes)
    if (object === undefined) {
      return Effect.fail(new Malformed({ detail: "The payload is not a JSON object in UTF-8." }))
    }
    const decoded = decode(object)
    if (Either.isRight(decoded)) return Effect.succeed(decoded.right)
    return Effect.fail(new Malformed({ detail: misfit(decoded.left.issue) }))
  }
}

const noPayload = new Malformed({ detail: "The payload is empty; this resource requires a JSON object." })

/** The payload must be a JSON object of this shape. */
export const typed = <A, I>(schema: Schema.Schema<A, I>): Payload<A> => {
  const decode = decodePayload(schema)
  return (bytes) => bytes.length === 0 ? Effect.fail(noPayload) : decode(bytes)
}

/** The payload must be empty or a JSON object of this shape. */
export const optional = <A, I>(schema: Schema.Schema<A, I>): Payload<A | undefined> => {
  const decode = decodePayload(schema)
  return (bytes) => bytes.length === 0 ? Effect.succeed(undefined) : decode(bytes)
}

/** Checks 2 to 4, for every kind of signer. */
const opened = Effect.fnUntraced(function*(posted: Posted) {
  const jws = yield* decodes(posted)
  yield* hasNoCrit(jws)
  yield* namesThisUrl(jws, posted)
  return jws
})

/** Checks 6b to 8: the account of the kid, whatever its status, and its key. */
const accountSigned = Effect.fnUntraced(function*(jws: Jws, posted: Posted) {
  const account = yield* accountOfKid(jws, posted)
  yield* algorithmKnown(jws)
  const keys = yield* AccountKeys
  const key = yield* keys.get(account.pubkey)
  yield* algorithmFits(jws, key)
  yield* signatureVerifies(jws, key, account)
  yield* nonceIsFresh(jws)
  return { account, key }
})

/** Checks 6a to 8: the key of the jwk. */
const keySigned = Effect.fnUntraced(function*(jws: Jws) {
  yield* algorithmKnown(jws)
  const key = yield* keyOfJwk(jws)
  yield* algorithmFits(jws, key)
  yield* signatureVerifies(jws, key, undefined)
  yield* nonceIsFresh(jws)
  return key
})

/** A request signed by an account of this profile. */
export const byKid = Effect.fnUntraced(function*<P>(posted: Posted, read: Payload<P>) {
  const jws = yield* opened(posted)
  yield* hasOneKey(jws, "kid")
  const { account, key } = yield* accountSigned(jws, posted)
  yield* refuseUnlessValid(account)
  const client = yield* seen(posted, jws, account)
  const caller: Caller = {
    profile: posted.endpoint.profile,
    accountId: account.id,
    thumbprint: key.thumbprint,
    pubkey: key.spki,
    client
  }
  const signed: BySomeAccount<P> = { ...posted, caller, account, payload: yield* read(jws.payload) }
  return signed
})

/** A request signed by the key it carries. */
export const byJwk = Effect.fnUntraced(function*<P>(posted: Posted, read: Payload<P>) {
  const jws = yield* opened(posted)
  yield* hasOneKey(jws, "jwk")
  const key = yield* keySigned(jws)
  const client = yield* clientOf(posted, true)
  const signed: BySomeKey<P> = { ...posted, key, client, payload: yield* read(jws.payload) }
  return signed
})

/** A request signed by an account of this profile, of any status, or by the key it carries. Only revokeCert uses it. */
export const byEither = Effect.fnUntraced(function*<P>(posted: Posted, read: Payload<P>) {
  const jws = yield* opened(posted)
  yield* hasOneKey(jws, jws.header.jwk === undefined ? "kid" : "jwk")
  const signer = jws.header.jwk === undefined ? yield* accountSigned(jws, posted) : { key: yield* keySigned(jws) }
  const client = "account" in signer ? yield* seen(posted, jws, signer.account) : yield* clientOf(posted, true)
  const signed: BySomeone<P> = { ...posted, signer, client, payload: yield* read(jws.payload) }
  return signed
})

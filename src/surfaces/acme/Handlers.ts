import { Effect, ParseResult, Schema } from "effect"
import { Malformed, NotFound, Unauthorized } from "../../domain/AcmeError.ts"
import { AuthorizationId, ChallengeId, isId, OrderId } from "../../domain/Id.ts"
import { statusShown } from "../../domain/Order.ts"
import type { Answer } from "../../kernel/http/Message.ts"
import { json } from "../../kernel/http/Message.ts"
import * as accounts from "../../operations/account/Accounts.ts"
import { rollOver } from "../../operations/account/KeyChange.ts"
import * as authorizations from "../../operations/authorization/Authorizations.ts"
import * as challenges from "../../operations/authorization/Challenges.ts"
import { currentSeconds } from "../../operations/Caller.ts"
import { anchor, issuerCertificate as issuerOf, revocationList } from "../../operations/crl/Publications.ts"
import { finalize } from "../../operations/order/Finalize.ts"
import type { OrderView } from "../../operations/order/Orders.ts"
import * as orders from "../../operations/order/Orders.ts"
import { renewalInfo } from "../../operations/order/Renewal.ts"
import { revokeCert } from "../../operations/revocation/RevokeCert.ts"
import type { Endpoint } from "./Endpoint.ts"
import type { BySomeAccount, BySomeKey, BySomeone } from "./Signed.ts"
import { urlOf } from "./Signed.ts"
import { accountObject, authorizationObject, challengeObject, orderObject, time } from "./Wire.ts"

// Wire shapes stand next to the handlers that read them; unknown members are ignored.

const pendingRetryAfter = "1"

/** A local CA signs in milliseconds; whoever else signs takes longer. */
const processingRetryAfter = ({ profile }: Endpoint): string => profile.signer.backend === "local_ca" ? "1" : "5"

/** The id of the path as an id of this service; anything else is a record that does not exist. */
const recordId = <Id>(make: (id: string) => Id, id: string): Effect.Effect<Id, NotFound> =>
  isId(id) ? Effect.succeed(make(id)) : new NotFound()

export const NewAccount = Schema.Struct({
  contact: Schema.optional(Schema.Array(Schema.String)),
  termsOfServiceAgreed: Schema.optional(Schema.Boolean),
  onlyReturnExisting: Schema.optional(Schema.Boolean),
  externalAccountBinding: Schema.optional(Schema.Unknown)
})

/** RFC 8555 section 7.3. */
export const newAccount = (signed: BySomeKey<typeof NewAccount.Type>) => {
  const { client, endpoint, key, payload } = signed
  return Effect.map(
    accounts.register({
      profile: endpoint.profile,
      key,
      client,
      contact: payload.contact ?? [],
      termsOfServiceAgreed: payload.termsOfServiceAgreed === true,
      onlyReturnExisting: payload.onlyReturnExisting === true,
      binding: payload.externalAccountBinding,
      url: urlOf(signed)
    }),
    ({ account, created }): Answer =>
      json(created ? 201 : 200, accountObject(endpoint, account), { location: endpoint.account(account.id) })
  )
}

export const AccountUpdate = Schema.Struct({
  contact: Schema.optional(Schema.Array(Schema.String)),
  status: Schema.optional(Schema.String)
})

/**
 * RFC 8555 sections 7.3.2 and 7.3.6: an empty payload reads; the status an account has is ignored; `deactivated` with
 * `contact` only deactivates.
 */
export const account = Effect.fnUntraced(function*(signed: BySomeAccount<typeof AccountUpdate.Type | undefined>) {
  const { caller, endpoint, id, payload } = signed
  if (id !== caller.accountId) return yield* notTheSigner
  const status = payload?.status
  // Only valid accounts get this far; clients send the whole object back, status and all.
  if (status !== undefined && status !== "valid" && status !== "deactivated") {
    return yield* new Malformed({ detail: "status: the only one an account can be set to is deactivated." })
  }
  const after = status === "deactivated"
    ? yield* accounts.deactivate(caller, signed.account)
    : payload?.contact === undefined
    ? signed.account
    : yield* accounts.updateContact(caller, signed.account, payload.contact)
  return json(200, accountObject(endpoint, after), { location: endpoint.account(after.id) })
})

const notTheSigner = new Unauthorized({ detail: "This is not the URL of the signing account." })

/** RFC 8555 section 7.1.2.1: `cursor` in the query goes on behind an order. */
export const ordersOfAccount = Effect.fnUntraced(function*(signed: BySomeAccount<undefined>) {
  const { caller, endpoint, id, request } = signed
  if (id !== caller.accountId) return yield* notTheSigner
  const cursor = new URLSearchParams(request.target.slice(request.path.length)).get("cursor")
  if (cursor !== null && !isId(cursor)) return yield* new Malformed({ detail: "The cursor is not one of this list's." })
  const { ids, next } = yield* orders.list(caller, cursor === null ? undefined : OrderId(cursor))
  const more = next === undefined ? {} : { link: `<${endpoint.orders(id)}?cursor=${next}>;rel="next"` }
  return json(200, { orders: ids.map(endpoint.order) }, more)
})

/** RFC 8555 section 7.3.5. */
export const keyChange = (signed: BySomeAccount<Buffer>) => {
  const { caller, endpoint, payload } = signed
  return Effect.map(
    rollOver(caller, signed.account, {
      inner: payload,
      url: urlOf(signed),
      accountUrl: endpoint.account(caller.accountId)
    }),
    (after) => json(200, accountObject(endpoint, after), { location: endpoint.account(after.id) })
  )
}

// RFC 3339 allows lower case, any offset and a leap second; the runtime's parser takes all but the last, and days and
// hours that do not exist as well.
const rfc3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/** Epoch seconds of an RFC 3339 time that can be written as one in UTC. */
const secondsOf = (text: string): number | undefined => {
  const [, year, month, day] = rfc3339.exec(text)?.map(Number) ?? []
  if (year === undefined || month === undefined || day === undefined) return undefined
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined
  const millis = Date.parse(text.toUpperCase())
  const written = new Date(millis).getUTCFullYear()
  return Number.isNaN(millis) || written < 0 || written > 9999 ? undefined : Math.floor(millis / 1000)
}

const Timestamp = Schema.transformOrFail(Schema.String, Schema.Int, {
  strict: true,
  decode: (text, _, ast) => {
    const seconds = secondsOf(text)
    return seconds === undefined
      ? ParseResult.fail(new ParseResult.Type(ast, text, "not an RFC 3339 time"))
      : ParseResult.succeed(seconds)
  },
  encode: (seconds) => ParseResult.succeed(new Date(seconds * 1000).toISOString())
})

export const NewOrder = Schema.Struct({
  identifiers: Schema.Array(Schema.Struct({ type: Schema.String, value: Schema.String })),
  notBefore: Schema.optional(Timestamp),
  notAfter: Schema.optional(Timestamp),
  replaces: Schema.optional(Schema.String)
})

const orderAnswer = (status: number, endpoint: Endpoint, order: OrderView): Effect.Effect<Answer> =>
  Effect.map(currentSeconds, (now) => {
    const shown = statusShown(order, endpoint.profile.order.validity_seconds, now)
    return json(status, orderObject(endpoint, order, now), {
      location: endpoint.order(order.id),
      ...(shown === "processing" ? { "retry-after": processingRetryAfter(endpoint) } : {})
    })
  })

/** RFC 8555 section 7.4. */
export const newOrder = ({ caller, endpoint, payload }: BySomeAccount<typeof NewOrder.Type>) =>
  Effect.flatMap(
    orders.create(caller, {
      identifiers: payload.identifiers,
      notBefore: payload.notBefore,
      notAfter: payload.notAfter,
      replaces: payload.replaces
    }),
    (order) => orderAnswer(201, endpoint, order)
  )

/** RFC 8555 section 7.1.3. */
export const order = Effect.fnUntraced(function*({ caller, endpoint, id }: BySomeAccount<undefined>) {
  return yield* orderAnswer(200, endpoint, yield* orders.find(caller, yield* recordId(OrderId, id)))
})

export const Finalize = Schema.Struct({ csr: Schema.String })

/** RFC 8555 section 7.4, second half. */
export const finalizeOrder = Effect.fnUntraced(function*(signed: BySomeAccount<typeof Finalize.Type>) {
  const { caller, endpoint, id, payload } = signed
  return yield* orderAnswer(200, endpoint, yield* finalize(caller, yield* recordId(OrderId, id), payload.csr))
})

/** RFC 8555 section 7.4.2: one chain, whatever is accepted. */
export const certificate = Effect.fnUntraced(function*({ caller, id }: BySomeAccount<undefined>) {
  const body = yield* orders.certificate(caller, yield* recordId(OrderId, id))
  return { status: 200, headers: { "content-type": "application/pem-certificate-chain" }, body } satisfies Answer
})

// Any whole number is a code, if mostly a bad one.
const Code = Schema.Number.pipe(Schema.filter((code) => Number.isInteger(code) || "not a whole number"))

export const RevokeCert = Schema.Struct({ certificate: Schema.String, reason: Schema.optional(Code) })

/** RFC 8555 section 7.6. */
export const revocation = ({ client, endpoint, payload, signer }: BySomeone<typeof RevokeCert.Type>) =>
  Effect.as(
    revokeCert({
      profile: endpoint.profile.name,
      backend: endpoint.profile.signer.backend,
      signer,
      certificate: payload.certificate,
      reason: payload.reason,
      client
    }),
    { status: 200, headers: {} } satisfies Answer
  )

/** The revocation list of the profile's CA, DER. */
export const crl = ({ endpoint }: { readonly endpoint: Endpoint }) =>
  Effect.map(
    revocationList(endpoint.profile.name),
    (body): Answer => ({ status: 200, headers: { "content-type": "application/pkix-crl" }, body })
  )

/** What the profile's clients are to trust, PEM. */
export const caPem = ({ endpoint }: { readonly endpoint: Endpoint }) =>
  Effect.map(
    anchor(endpoint.profile.name),
    (body): Answer => ({ status: 200, headers: { "content-type": "application/x-pem-file" }, body })
  )

/** The certificate of the profile's CA, DER: for those who look for the issuer of a leaf. */
export const issuerCertificate = ({ endpoint }: { readonly endpoint: Endpoint }) =>
  Effect.map(
    issuerOf(endpoint.profile.name),
    (body): Answer => ({ status: 200, headers: { "content-type": "application/pkix-cert" }, body })
  )

const retryAfterSeconds = { usual: "21600", revoked: "60" }

/** RFC 9773 section 4: public, for whoever knows the certificate. */
export const renewalInformation = ({ endpoint, id }: { readonly endpoint: Endpoint; readonly id: string }) =>
  Effect.map(
    renewalInfo(endpoint.profile.name, id),
    ({ end, explanationUrl, isRevoked, start }) =>
      json(200, {
        suggestedWindow: { start: time(start), end: time(end) },
        ...(explanationUrl === undefined ? {} : { explanationURL: explanationUrl })
      }, { "retry-after": isRevoked ? retryAfterSeconds.revoked : retryAfterSeconds.usual })
  )

export const AuthorizationUpdate = Schema.Struct({ status: Schema.Literal("deactivated") })

/** RFC 8555 sections 7.5 and 7.5.2, told apart by whether a payload arrived. */
export const authorization = Effect.fnUntraced(function*(
  { caller, endpoint, id, payload }: BySomeAccount<typeof AuthorizationUpdate.Type | undefined>
) {
  const authzId = yield* recordId(AuthorizationId, id)
  const view = payload === undefined
    ? yield* authorizations.find(caller, authzId)
    : yield* authorizations.deactivate(caller, authzId)
  return json(
    200,
    authorizationObject(endpoint, view),
    view.status === "pending" ? { "retry-after": pendingRetryAfter } : {}
  )
})

/** Any JSON object triggers. */
export const Trigger = Schema.Struct({})

/** RFC 8555 section 7.5.1: an empty payload polls. */
export const challenge = Effect.fnUntraced(function*(
  { caller, endpoint, id, payload }: BySomeAccount<typeof Trigger.Type | undefined>
) {
  const challengeId = yield* recordId(ChallengeId, id)
  const found = payload === undefined
    ? yield* challenges.find(caller, challengeId)
    : yield* challenges.trigger(caller, challengeId)
  return json(200, challengeObject(endpoint, found), {
    link: `<${endpoint.authorization(found.authzId)}>;rel="up"`,
    ...(found.status === "processing" ? { "retry-after": pendingRetryAfter } : {})
  })
})

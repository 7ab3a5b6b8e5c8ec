import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { OrderId } from "../../../domain/Id.ts"
import type { Answer } from "../../../engine/http/Message.ts"
import { json } from "../../../engine/http/Message.ts"
import { currentSeconds, parseRfc3339, rfc3339 } from "../../../engine/Time.ts"
import { finalize } from "../../../operations/acme/Finalize.ts"
import type { OrderView } from "../../../operations/acme/Orders.ts"
import * as orders from "../../../operations/acme/Orders.ts"
import { datesOf } from "../../../operations/acme/Validity.ts"
import type { Caller } from "../../../operations/Caller.ts"
import { shareOfCaller } from "../../../operations/Caller.ts"
import type { Endpoint } from "../Endpoint.ts"
import type { Awaited } from "../PendingAnswer.ts"
import { begun, polled } from "../PendingAnswer.ts"
import type { BySomeAccount } from "../Posted.ts"
import { recordId } from "../Posted.ts"
import { orderObject } from "../Wire.ts"

const Timestamp = Schema.String.pipe(Schema.decodeTo(
  Schema.Int,
  SchemaTransformation.transformEffect({
    decode: (text) => {
      const seconds = parseRfc3339(text)
      return seconds === undefined
        ? Effect.fail(new SchemaIssue.InvalidValue({ message: "not an RFC 3339 time" }))
        : Effect.succeed(seconds)
    },
    encode: (seconds) => Effect.succeed(rfc3339(seconds))
  })
))

export const NewOrder = Schema.Struct({
  identifiers: Schema.Array(Schema.Struct({ type: Schema.String, value: Schema.String })),
  notBefore: Schema.optionalKey(Timestamp),
  notAfter: Schema.optionalKey(Timestamp),
  replaces: Schema.optionalKey(Schema.String),
  profile: Schema.optionalKey(Schema.String)
})

const orderAnswer = Effect.fnUntraced(function*(
  status: number,
  caller: Caller,
  endpoint: Endpoint,
  order: OrderView
) {
  const now = yield* currentSeconds
  const dates = yield* datesOf(caller, order, now)
  return json(status, orderObject(endpoint, order, dates, now), { location: endpoint.order(order.id) })
})

/** Creates an order (RFC 8555 section 7.4). */
export const newOrder = Effect.fnUntraced(function*(signed: BySomeAccount<typeof NewOrder.Type>) {
  const { caller, endpoint, payload } = signed
  const order = yield* orders.create(caller, {
    identifiers: payload.identifiers,
    notBefore: payload.notBefore,
    notAfter: payload.notAfter,
    replaces: payload.replaces,
    certificateProfile: payload.profile
  })
  return yield* orderAnswer(201, caller, endpoint, order)
})

/**
 * Returns the job that an order in `processing` waits for. A local CA signs in milliseconds; every other signer takes
 * longer.
 */
const signingOf = ({ profile }: Endpoint, dedupKey: OrderId, isRestricted: boolean): Awaited => ({
  kind: profile.signer.backend === "relay"
    ? (isRestricted ? "signer_relay_issue_restricted" : "signer_relay_issue")
    : (isRestricted ? "signer_issue_restricted" : "signer_issue"),
  dedupKey,
  pauseSeconds: profile.signer.backend === "local_ca" ? 1 : 5
})

const found = Effect.fnUntraced(function*(caller: Caller, endpoint: Endpoint, order: OrderView) {
  const answer = yield* orderAnswer(200, caller, endpoint, order)
  const awaits = order.status === "processing" ? signingOf(endpoint, order.id, order.restricted === 1) : undefined
  return { answer, awaits }
})

const read = Effect.fnUntraced(function*({ caller, endpoint }: BySomeAccount<unknown>, id: OrderId) {
  return yield* found(caller, endpoint, yield* orders.find(caller, id))
})

/** Reads an order (RFC 8555 section 7.1.3). */
export const order = Effect.fnUntraced(function*(signed: BySomeAccount<undefined>) {
  const orderId = yield* recordId(OrderId, signed.id)
  const share = shareOfCaller(signed.caller)
  const expected = [false, true].map((isRestricted) => ({
    ...signingOf(signed.endpoint, orderId, isRestricted),
    share
  }))
  return yield* polled(read(signed, orderId), expected)
})

export const Finalize = Schema.Struct({ csr: Schema.String })

/** Finalizes an order (RFC 8555 section 7.4). */
export const finalizeOrder = Effect.fnUntraced(function*(signed: BySomeAccount<typeof Finalize.Type>) {
  const { caller, endpoint, id, payload } = signed
  const orderId = yield* recordId(OrderId, id)
  const finalized = Effect.gen(function*() {
    const order = yield* finalize(caller, orderId, payload.csr)
    return { ...yield* found(caller, endpoint, order), isFirst: true }
  })
  return yield* begun(finalized, {
    limitMillis: endpoint.profile.order.finalize_wait_ms,
    read: read(signed, orderId)
  })
})

/**
 * Returns the handler of a chain of an order (RFC 8555 section 7.4.2): the usual one at position 0, or an alternate one.
 * The answer links to all others. Its form is PEM, whatever the client's Accept header says.
 */
export const certificate = (position: number) =>
  Effect.fnUntraced(function*({ caller, endpoint, id }: BySomeAccount<undefined>) {
    const orderId = yield* recordId(OrderId, id)
    const { alternates, chain } = yield* orders.certificate(caller, orderId, position)
    const link = Array.from({ length: alternates + 1 }, (_, at) => at)
      .filter((at) => at !== position)
      .map((at) => `<${endpoint.certificate(orderId)}${at === 0 ? "" : `/${at}`}>;rel="alternate"`)
    return {
      status: 200,
      headers: { "content-type": "application/pem-certificate-chain", ...link.length === 0 ? {} : { link } },
      body: chain
    } satisfies Answer
  })

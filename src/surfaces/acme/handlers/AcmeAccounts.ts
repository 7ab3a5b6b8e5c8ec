import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Malformed, Unauthorized } from "../../../domain/AcmeError.ts"
import { isId, OrderId } from "../../../domain/Id.ts"
import type { Answer } from "../../../engine/http/Message.ts"
import { json } from "../../../engine/http/Message.ts"
import * as accounts from "../../../operations/acme/Accounts.ts"
import { rollOver } from "../../../operations/acme/KeyChange.ts"
import * as orders from "../../../operations/acme/Orders.ts"
import type { BySomeAccount, BySomeKey } from "../Posted.ts"
import { accountObject } from "../Wire.ts"

/* Handles accounts. The shape of each payload is next to the handler that reads it. Unknown members are ignored. */

export const NewAccount = Schema.Struct({
  contact: Schema.optionalKey(Schema.Array(Schema.String)),
  termsOfServiceAgreed: Schema.optionalKey(Schema.Boolean),
  onlyReturnExisting: Schema.optionalKey(Schema.Boolean),
  externalAccountBinding: Schema.optionalKey(Schema.Unknown)
})

/** Registers or finds an account (RFC 8555 section 7.3). */
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
      url: signed.url
    }),
    ({ account, created }): Answer =>
      json(created ? 201 : 200, accountObject(endpoint, account), { location: endpoint.account(account.id) })
  )
}

export const AccountUpdate = Schema.Struct({
  contact: Schema.optionalKey(Schema.Array(Schema.String)),
  status: Schema.optionalKey(Schema.String)
})

/**
 * Reads, changes or deactivates an account (RFC 8555 sections 7.3.2 and 7.3.6). An empty payload only reads the
 * account. An unchanged status is ignored. If the status is `deactivated`, `contact` is ignored.
 */
export const account = Effect.fnUntraced(function*(signed: BySomeAccount<typeof AccountUpdate.Type | undefined>) {
  const { caller, endpoint, id, payload } = signed
  if (id !== caller.accountId) return yield* notTheSigner
  const status = payload?.status
  // Some clients send the whole object back, with its status. This status is `valid`, because only valid accounts get
  // here.
  if (status !== undefined && status !== "valid" && status !== "deactivated") {
    return yield* new Malformed({ detail: "The status of an account can only be set to deactivated." })
  }
  const after = status === "deactivated"
    ? yield* accounts.deactivate(caller, signed.account)
    : payload?.contact === undefined
    ? signed.account
    : yield* accounts.updateContact(caller, signed.account, payload.contact)
  return json(200, accountObject(endpoint, after), { location: endpoint.account(after.id) })
})

const notTheSigner = new Unauthorized({ detail: "This is not the URL of the signing account." })

/**
 * Lists the orders of an account (RFC 8555 section 7.1.2.1). The list continues after the order that `cursor` names in
 * the query.
 */
export const ordersOfAccount = Effect.fnUntraced(function*(signed: BySomeAccount<undefined>) {
  const { caller, endpoint, id, query } = signed
  if (id !== caller.accountId) return yield* notTheSigner
  const cursor = new URLSearchParams(query).get("cursor")
  if (cursor !== null && !isId(cursor)) return yield* new Malformed({ detail: "The cursor is not from this list." })
  const { ids, next } = yield* orders.list(caller, cursor === null ? undefined : OrderId(cursor))
  const more = next === undefined ? {} : { link: `<${endpoint.orders(id)}?cursor=${next}>;rel="next"` }
  return json(200, { orders: ids.map(endpoint.order) }, more)
})

/** Changes the key of an account (RFC 8555 section 7.3.5). */
export const keyChange = (signed: BySomeAccount<Buffer>) => {
  const { caller, endpoint, payload } = signed
  return Effect.map(
    rollOver(caller, signed.account, {
      payload,
      url: signed.url,
      accountUrl: endpoint.account(caller.accountId),
      respelled: endpoint.respelled
    }),
    (after) => json(200, accountObject(endpoint, after), { location: endpoint.account(after.id) })
  )
}

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Account } from "../../domain/Account.ts"
import { checkContacts } from "../../domain/Account.ts"
import { contactChange } from "../../domain/Audit.ts"
import { AccountId, isId } from "../../domain/Id.ts"
import { BadRequest, LiveCertificates, NoSuch } from "../../domain/OperatorError.ts"
import { problemOf } from "../../domain/Problem.ts"
import { emit } from "../../domain/words/Log.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { notify } from "../../services/notify/Notifier.ts"
import * as accounts from "../../store/AccountRows.ts"
import type { AccountFilters, AccountRecord } from "../../store/AccountSearch.ts"
import * as accountSearch from "../../store/AccountSearch.ts"
import * as audit from "../../store/AuditRows.ts"
import * as deletions from "../../store/Deletions.ts"
import { recentOrders } from "../../store/orders/AccountActivity.ts"
import * as orderSearch from "../../store/orders/OrderSearch.ts"
import type { Operator } from "../Operator.ts"
import { actorFields, actorOf, tellingRefusal } from "../Operator.ts"
import * as orphans from "../work/OrphanedCertificates.ts"
import { readForOperator } from "./OperatorReads.ts"
import * as orders from "./OrderRecords.ts"

/* What operators can do with accounts. */

interface Page {
  readonly limit: number
  readonly offset: number
}

/** Finds an account by its id, in any profile. */
export const find = Effect.fnUntraced(function*(id: string) {
  const account = isId(id) ? yield* accountSearch.findRecord(AccountId(id)) : undefined
  return account ?? (yield* new NoSuch({ noun: "account", id }))
})

/** Returns a page of accounts, newest first, and the number of matches. */
export const list = (filters: AccountFilters, page: Page) =>
  readForOperator(
    Effect.all({ items: accountSearch.search(filters, page), total: accountSearch.countMatches(filters) })
  )

/** Returns an account, with the numbers of its orders and of its live certificates, and its recent orders. */
export const detail = (id: string) =>
  readForOperator(Effect.gen(function*() {
    const account = yield* find(id)
    return {
      account,
      orderCount: yield* orderSearch.countMatches({ accountId: account.id }),
      liveCertificates: yield* deletions.liveCertificates([account.id], yield* currentSeconds),
      recent: yield* recentOrders(account.id, yield* currentSeconds)
    }
  }))

/** The result of {@link detail}. */
export type AccountDetail = Effect.Success<ReturnType<typeof detail>>

/** Returns a page of an account's orders, newest first, and the number of all its orders. */
export const ordersOf = Effect.fn("AccountRecords.ordersOf")(function*(id: string, page: Page) {
  const { id: accountId } = yield* find(id)
  return yield* orders.list({ accountId }, page)
})

/** Returns what every audit row of an operator about an account contains. */
export const rowOf = (operator: Operator, { id, profile }: Pick<Account, "id" | "profile">) =>
  ({ ...actorOf(operator), profile, accountId: id }) as const

const isSame = (one: ReadonlyArray<string>, other: ReadonlyArray<string>): boolean =>
  one.length === other.length && one.every((text, index) => text === other[index])

/** Refuses to change an account that is not valid, because the contacts of such an account are no longer used. */
const refuseUnlessValid = ({ status }: AccountRecord) =>
  status === "valid"
    ? Effect.void
    : new BadRequest({ detail: `The account is ${status}; contacts can be changed only while it is valid.` })

/**
 * Replaces the contacts. The rules are the same as for clients. An empty list removes all contacts. If the contacts are
 * the same as before, nothing changes.
 */
export const updateContact = Effect.fn("AccountRecords.updateContact")(
  function*(operator: Operator, id: string, given: ReadonlyArray<string>) {
    const before = yield* find(id)
    const contact = yield* Effect.fromResult(
      Result.mapError(checkContacts(given), (error) => new BadRequest({ detail: problemOf(error).detail }))
    )
    yield* refuseUnlessValid(before)
    if (isSame(before.contact, contact)) return yield* detail(id)
    const updated = yield* audit.changing(
      accounts.updateContact(before.profile, before.id, contact),
      audit.insert({
        event: "account_contact_updated",
        ...rowOf(operator, before),
        detail: contactChange(before.contact, contact)
      })
    )
    if (updated === undefined) yield* Effect.flatMap(find(id), refuseUnlessValid)
    else yield* emit("admin_account_contact_updated", { ...actorFields(operator), account_id: before.id })
    return yield* detail(id)
  },
  Effect.uninterruptible
)

/**
 * Deactivates an account permanently. Its orders remain, so its certificates can be revoked. A second call changes
 * nothing.
 */
export const deactivate = Effect.fn("AccountRecords.deactivate")(function*(operator: Operator, id: string) {
  const { id: accountId, profile } = yield* find(id)
  const row = rowOf(operator, { id: accountId, profile })
  const told = notify({
    event: "account_deactivated",
    scope: profile,
    fields: { account_id: accountId, client_ip: operator.client?.ip }
  })
  const changed = yield* audit.changing(
    accounts.deactivate(profile, accountId),
    Effect.andThen(audit.insert({ event: "account_deactivated", ...row, detail: { via: "account" } }), told)
  )
  if (changed !== undefined) {
    yield* emit("admin_account_deactivated", { ...actorFields(operator), account_id: accountId })
  }
  return yield* detail(id)
}, Effect.uninterruptible)

const refuseWhileLive = Effect.fnUntraced(function*(id: AccountId) {
  const count = yield* deletions.liveCertificates([id], yield* currentSeconds)
  if (count > 0) return yield* new LiveCertificates({ noun: "account", id, count })
})

/**
 * Returns what {@link remove} would delete, and refuses whatever {@link remove} would refuse. Commands call this
 * function before they ask for confirmation.
 */
export const preview = Effect.fn("AccountRecords.preview")(function*(id: string) {
  const found = yield* detail(id)
  yield* refuseWhileLive(found.account.id)
  return found
})

/**
 * Deletes an account with its orders and everything that belongs to them. Refuses the deletion while a certificate of
 * the account may still be in use.
 */
export const remove = Effect.fn("AccountRecords.remove")(function*(operator: Operator, id: string) {
  const done = yield* transaction(Effect.gen(function*() {
    const { id: accountId, profile } = yield* find(id)
    yield* accounts.lockForDeletion(accountId)
    yield* deletions.lockOrders([accountId])
    yield* refuseWhileLive(accountId)
    const [owned] = yield* deletions.owned([accountId])
    yield* orphans.lookAfterAll([accountId])
    const [gone] = yield* deletions.deleteAccounts([accountId])
    // Another operator deleted the account in the meantime.
    if (owned === undefined || gone === undefined) return yield* new NoSuch({ noun: "account", id })
    const { authorizations, orders } = owned
    yield* audit.insert({
      event: "account_deleted",
      ...rowOf(operator, { id: accountId, profile }),
      detail: { orders, authorizations, via: "account" }
    })
    return { deleted: { orders, authorizations } }
  })).pipe(tellingRefusal(operator, { account_id: id }))
  yield* emit("admin_account_deleted", { ...actorFields(operator), account_id: id, ...done.deleted })
  return done
}, Effect.uninterruptible)

import * as Effect from "effect/Effect"
import type { AccountsMode } from "../../domain/Audit.ts"
import type { AccountId } from "../../domain/Id.ts"
import { isId } from "../../domain/Id.ts"
import { LiveCertificates, NoSuch } from "../../domain/OperatorError.ts"
import { emit } from "../../domain/words/Log.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { notify } from "../../services/notify/Notifier.ts"
import * as audit from "../../store/AuditRows.ts"
import * as deletions from "../../store/Deletions.ts"
import * as eabKeys from "../../store/eab/EabKeys.ts"
import * as eabScopes from "../../store/eab/EabScopes.ts"
import type { Operator } from "../Operator.ts"
import { actorFields, actorOf, tellingRefusal } from "../Operator.ts"
import * as orphans from "../work/OrphanedCertificates.ts"
import { find } from "./Eab.ts"

/* Deletes credentials of external account binding. */

/**
 * Counts what a deletion would affect, for the question that is asked before the deletion. Refuses whatever the
 * deletion would refuse.
 */
export const preview = Effect.fn("EabDeletion.preview")(function*(kid: string, mode: AccountsMode) {
  const credential = yield* find(kid)
  const accounts = yield* eabKeys.accountsOf(kid)
  if (mode === "delete") yield* refuseWhileLive(kid, accounts)
  const bound = yield* deletions.owned(accounts)
  return { credential, accounts: bound.length, orders: bound.reduce((sum, { orders }) => sum + orders, 0) }
})

const refuseWhileLive = Effect.fnUntraced(function*(kid: string, accounts: ReadonlyArray<AccountId>) {
  const count = yield* deletions.liveCertificates(accounts, yield* currentSeconds)
  if (count > 0) return yield* new LiveCertificates({ noun: "credential", id: kid, count })
})

/** Writes the audit rows of a deletion, and returns how many records were deleted, changed and kept. */
const told = Effect.fnUntraced(function*(
  operator: Operator,
  kid: string,
  mode: AccountsMode,
  done: {
    readonly credential: { readonly label: string | undefined; readonly profile: string | undefined }
    readonly bound: Effect.Success<ReturnType<typeof deletions.owned>>
    readonly deactivated: Effect.Success<ReturnType<typeof deletions.deactivateAccounts>>
  }
) {
  const deleted = mode === "delete" ? done.bound : []
  const kept = done.bound.length - deleted.length - done.deactivated.length
  yield* audit.insert({
    event: "eab_deleted",
    ...actorOf(operator),
    profile: done.credential.profile,
    detail: {
      kid,
      ...(done.credential.label === undefined ? {} : { label: done.credential.label }),
      accounts: mode,
      kept,
      deactivated: done.deactivated.length,
      deleted: deleted.length
    }
  })
  for (const { id, profile } of done.deactivated) {
    yield* audit.insert({
      event: "account_deactivated",
      ...actorOf(operator),
      profile,
      accountId: id,
      detail: { via: "eab_delete" }
    })
    const fields = { account_id: id, client_ip: operator.client?.ip }
    yield* notify({ event: "account_deactivated", scope: profile, fields })
  }
  for (const { authorizations, id, orders, profile } of deleted) {
    yield* audit.insert({
      event: "account_deleted",
      ...actorOf(operator),
      profile,
      accountId: id,
      detail: { orders, authorizations, via: "eab_delete" }
    })
  }
  return {
    deleted: { accounts: deleted.length, orders: deleted.reduce((sum, { orders }) => sum + orders, 0) },
    deactivatedAccounts: done.deactivated.length,
    keptAccounts: kept
  }
})

/**
 * Deletes a credential. `mode` says whether its accounts are kept, deactivated or deleted. Either all of this is done
 * or none of it. Accounts with a live certificate are never deleted (docs/configure/credentials.md, "Deleting, and what
 * becomes of accounts").
 */
export const remove = Effect.fn("EabDeletion.remove")(function*(operator: Operator, kid: string, mode: AccountsMode) {
  const done = yield* transaction(Effect.gen(function*() {
    if (!isId(kid) || !(yield* eabKeys.lock(kid))) return yield* new NoSuch({ noun: "credential", id: kid })
    const accounts = yield* mode === "keep" ? eabKeys.accountsOf(kid) : eabKeys.lockAccounts(kid)
    if (mode !== "keep") yield* deletions.lockOrders(accounts)
    if (mode === "delete") yield* refuseWhileLive(kid, accounts)
    const bound = yield* deletions.owned(accounts)
    const deactivated = mode === "deactivate" ? yield* deletions.deactivateAccounts(accounts) : []
    if (mode === "delete") {
      yield* orphans.lookAfterAll(accounts)
      yield* deletions.deleteAccounts(accounts)
    }
    // The kept accounts must not order what their credential forbade.
    const { names } = yield* eabScopes.scopeOf(kid)
    if (names !== undefined) yield* eabScopes.loseScope(kid, yield* currentSeconds)
    const credential = yield* eabKeys.remove(kid)
    const done = { credential: credential ?? (yield* new NoSuch({ noun: "credential", id: kid })), bound, deactivated }
    return yield* told(operator, kid, mode, done)
  })).pipe(tellingRefusal(operator, { kid }))
  yield* emit("admin_eab_deleted", { ...actorFields(operator), kid, ...done.deleted })
  return done
}, Effect.uninterruptible)

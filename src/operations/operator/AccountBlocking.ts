import * as Effect from "effect/Effect"
import { AccountStateRefused, BadRequest } from "../../domain/OperatorError.ts"
import { emit } from "../../domain/words/Log.ts"
import { lacking } from "../../engine/queue/Lacking.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { currentSeconds, rfc3339 } from "../../engine/Time.ts"
import { notify } from "../../services/notify/Notifier.ts"
import * as blocks from "../../store/AccountBlocks.ts"
import type { AccountRecord } from "../../store/AccountSearch.ts"
import * as audit from "../../store/AuditRows.ts"
import type { Operator } from "../Operator.ts"
import { actorFields } from "../Operator.ts"
import * as accounts from "./AccountRecords.ts"

/*
 * What operators do to keep an account from ordering without ending it (docs/configure/policy.md, "Blocked accounts").
 * A request reads the block with its account, so a block takes effect with the next request, in every process.
 */

/** Refuses to change the block of an account, and says in which state the account is. */
const refuse = ({ blockedAt, id, status }: AccountRecord) =>
  new AccountStateRefused({
    id,
    state: status !== "valid"
      ? `is ${status}, and can order nothing`
      : blockedAt === undefined
      ? "is not blocked"
      : `is blocked already, since ${rfc3339(blockedAt)}`
  })

const told = (operator: Operator, { id, profile }: AccountRecord) => ({
  scope: profile,
  fields: { account_id: id, client_ip: operator.client?.ip }
})

/**
 * Refuses a block that a running process of an older version would ignore. Must be run in the transaction that has
 * written the block: such a process is either found here, or finds the block when it starts (migration 0053).
 */
const refuseBesideOlder = Effect.gen(function*() {
  yield* blocks.awaitStarting
  const owner = yield* lacking("blocks")
  if (owner === undefined) return
  return yield* new BadRequest({
    detail:
      `The process ${owner} runs an older version, which does not know blocks; stop it first, or deactivate the account.`
  })
})

/** Blocks an account. The reason is for operators only. */
export const block = Effect.fn("AccountBlocking.block")(function*(operator: Operator, id: string, reason: string) {
  const before = yield* accounts.find(id)
  const now = yield* currentSeconds
  const { fields, scope } = told(operator, before)
  const changed = yield* transaction(Effect.gen(function*() {
    const row = yield* blocks.block(before.id, reason, now)
    if (row === undefined) return undefined
    yield* refuseBesideOlder
    yield* audit.insert({ event: "account_blocked", ...accounts.rowOf(operator, before), detail: { reason } })
    yield* notify({ event: "account_blocked", scope, fields: { ...fields, block_reason: reason } })
    return row
  }))
  if (changed === undefined) return yield* refuse(yield* accounts.find(id))
  yield* emit("admin_account_blocked", { ...actorFields(operator), account_id: before.id })
  return yield* accounts.detail(id)
}, Effect.uninterruptible)

/** Unblocks an account, which can order again at once. */
export const unblock = Effect.fn("AccountBlocking.unblock")(function*(operator: Operator, id: string) {
  const before = yield* accounts.find(id)
  const { blockedAt, blockReason: reason = "" } = before
  if (blockedAt === undefined) return yield* refuse(before)
  const { fields, scope } = told(operator, before)
  const detail = { reason, blocked_at: rfc3339(blockedAt) }
  const changed = yield* transaction(Effect.gen(function*() {
    const row = yield* blocks.unblock(before.id, blockedAt)
    if (row === undefined) return undefined
    yield* audit.insert({ event: "account_unblocked", ...accounts.rowOf(operator, before), detail })
    yield* notify({ event: "account_unblocked", scope, fields })
    return row
  }))
  if (changed === undefined) return yield* refuse(yield* accounts.find(id))
  yield* emit("admin_account_unblocked", { ...actorFields(operator), account_id: before.id })
  return yield* accounts.detail(id)
}, Effect.uninterruptible)

import * as Effect from "effect/Effect"
import * as blocking from "../../../operations/operator/AccountBlocking.ts"
import { accountDetailObject } from "../../../operations/operator/objects/AccountObjects.ts"
import { act } from "../Act.ts"
import { Acting } from "../Acting.ts"
import { line } from "../Field.ts"
import { AccountDetail, accountId } from "./AccountShape.ts"

/* Declares the acts that block and unblock an account. */

const longestReason = 500

/** Blocks an account. */
export const blockAccount = act({
  id: "blockAccount",
  does: "Block an account: it can order nothing until it is unblocked; it can still revoke its certificates",
  access: "operator",
  input: {
    id: accountId,
    reason: line("Why the account is blocked. Operators see it; the client does not.", { longest: longestReason })
  },
  output: AccountDetail,
  errors: ["account_state"],
  run: ({ id, reason }) =>
    Effect.gen(function*() {
      return accountDetailObject(yield* blocking.block(yield* Acting.operator, id, reason))
    }),
  http: { route: "POST /api/accounts/{id}/block" },
  cli: {
    command: "account block",
    example: "account block ID --reason looping",
    args: ["id"],
    text: ({ id }) => `Account ${id} is blocked. Orders under way get no certificate; those that it has stay valid.`
  }
})

/** Unblocks an account. */
export const unblockAccount = act({
  id: "unblockAccount",
  does: "Unblock an account, which can order again at once",
  access: "operator",
  input: { id: accountId },
  output: AccountDetail,
  errors: ["account_state"],
  run: ({ id }) =>
    Effect.gen(function*() {
      return accountDetailObject(yield* blocking.unblock(yield* Acting.operator, id))
    }),
  http: { route: "POST /api/accounts/{id}/unblock" },
  cli: {
    command: "account unblock",
    example: "account unblock ID",
    text: ({ id }) => `Account ${id} is not blocked any more.`
  }
})

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { DnsName } from "../../domain/Identifier.ts"
import { BadRequest } from "../../domain/OperatorError.ts"
import type { Comparable } from "../../engine/net/Address.ts"
import { Database } from "../../engine/sql/Database.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import * as eabLabels from "../../store/eab/EabLabels.ts"
import { scopeOfAccount } from "../../store/eab/EabScopes.ts"
import { kindFor } from "../acme/Scope.ts"
import * as accounts from "./AccountRecords.ts"
import { explain } from "./Explain.ts"
import { namedKind } from "./KindRecords.ts"
import { readForOperator } from "./OperatorReads.ts"

/** What an operator says about a hypothetical order. */
export interface PolicyQuestion {
  readonly client: Comparable | undefined
  readonly names: ReadonlyArray<DnsName>
  readonly commonNames: ReadonlyArray<string>
  readonly accountId: string | undefined
  readonly kind: string | undefined
}

const senderOf = Effect.fnUntraced(function*(profile: ProfileConfig, id: string) {
  const database = yield* Database
  const account = yield* accounts.find(id)
  if (account.profile !== profile.name) {
    return yield* new BadRequest({
      member: "accountId",
      detail: `takes an account of the profile ${profile.name}; this one belongs to ${account.profile}.`
    })
  }
  return {
    account,
    scope: yield* scopeOfAccount(account.id),
    credential: Effect.provideService(eabLabels.ofAccount(account.id), Database, database)
  }
})

const nobody = { account: undefined, scope: undefined, credential: Effect.succeed(undefined) } as const

/** Runs the policy that a served profile has in force, as the requests of an order would. Scripts and look-ups run. */
export const tryPolicy = Effect.fn("PolicyTrial.tryPolicy")(
  function*(profile: ProfileConfig, { accountId, client, commonNames, kind, names }: PolicyQuestion) {
    const sender = accountId === undefined ? nobody : yield* readForOperator(senderOf(profile, accountId))
    const { scope } = sender
    const chosen = scope === undefined ? undefined : Result.getOrUndefined(kindFor(profile, scope, undefined))
    const found = yield* namedKind(profile, kind ?? chosen?.name)
    return yield* explain(profile, {
      ...sender,
      client,
      names,
      commonNames,
      method: "POST",
      path: "/newOrder",
      kind: found.name
    })
  }
)

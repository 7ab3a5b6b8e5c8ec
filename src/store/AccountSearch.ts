import { Effect } from "effect"
import type { AccountStatus } from "../domain/Account.ts"
import type { AccountId } from "../domain/Id.ts"
import { int, kid, nullable, text, uuid } from "../kernel/sql/Column.ts"
import { all, first } from "../kernel/sql/Database.ts"
import { perFilters } from "../kernel/sql/Filters.ts"
import { select, statement } from "../kernel/sql/Statement.ts"
import { accountColumns } from "./Accounts.ts"

/* Searches of accounts for operators: by id without a profile, or by any of a set of filters. */

const record = {
  ...accountColumns,
  eabKid: nullable(kid),
  createdAt: int,
  createdIp: nullable(text()),
  createdPtr: nullable(text()),
  lastSeenIp: nullable(text()),
  lastSeenPtr: nullable(text())
}

/** An account with everything that operators are shown. Times are epoch seconds. */
export type AccountRecord = NonNullable<Effect.Effect.Success<ReturnType<typeof findRecord>>>

/** The filters of a listing; an absent filter excludes nothing. */
export interface AccountFilters {
  readonly profile?: string | undefined
  readonly status?: AccountStatus | undefined
  /** The credential that bound the account. */
  readonly eabKid?: string | undefined
}

const filterColumns = { profile: text(), status: text<AccountStatus>(), eabKid: kid }

const conditions: { readonly [F in keyof AccountFilters]-?: string } = {
  profile: "a.profile = :profile",
  status: "a.status = :status",
  eabKid: "a.eab_kid = :eabKid"
}

const filterNames = ["profile", "status", "eabKid"] as const

const whereOf = (used: ReadonlyArray<keyof AccountFilters>): string =>
  used.map((name) => conditions[name]).join(" AND ") || "1 = 1"

const pageStatement = perFilters(filterNames, (used) =>
  statement({
    name: "account_search",
    params: { ...filterColumns, limit: int, offset: int },
    row: record,
    sql: () =>
      `SELECT ${select(record, "a")} FROM accounts a WHERE ${whereOf(used)}
       ORDER BY a.created_at DESC, a.id DESC LIMIT :limit OFFSET :offset`
  }))

const countStatement = perFilters(filterNames, (used) =>
  statement({
    name: "account_search_count",
    params: filterColumns,
    row: { total: int },
    sql: () => `SELECT count(*) AS "total" FROM accounts a WHERE ${whereOf(used)}`
  }))

// The first comparison lets the engine read a range of an index, which an OR alone does not.
const behindStatement = perFilters(filterNames, (used) =>
  statement({
    name: "account_search_behind",
    params: { ...filterColumns, beforeTime: int, beforeId: uuid<AccountId>(), limit: int },
    row: record,
    sql: () =>
      `SELECT ${select(record, "a")} FROM accounts a
       WHERE a.created_at <= :beforeTime AND (a.created_at < :beforeTime OR a.id < :beforeId) AND ${whereOf(used)}
       ORDER BY a.created_at DESC, a.id DESC LIMIT :limit`
  }))

const byId = statement({
  name: "account_record",
  params: { id: uuid<AccountId>() },
  row: record,
  sql: () => `SELECT ${select(record, "a")} FROM accounts a WHERE a.id = :id`
})

const nobody = "00000000-0000-0000-0000-000000000000"

const valuesOf = ({ eabKid = nobody, profile = "", status = "valid" }: AccountFilters) =>
  ({ profile, status, eabKid }) as const

/** An account by its id alone. */
export const findRecord = (id: AccountId) => first(byId, { id })

/** A page of matching accounts, newest first. */
export const search = (filters: AccountFilters, page: { readonly limit: number; readonly offset: number }) =>
  all(pageStatement(filters), { ...valuesOf(filters), ...page })

/** How many accounts match. */
export const countMatches = (filters: AccountFilters) =>
  Effect.map(first(countStatement(filters), valuesOf(filters)), (row) => row?.total ?? 0)

/** Matching accounts, newest first, after a given one. */
export const behind = (
  filters: AccountFilters,
  before: { readonly beforeTime: number; readonly beforeId: AccountId; readonly limit: number }
) => all(behindStatement(filters), { ...valuesOf(filters), ...before })

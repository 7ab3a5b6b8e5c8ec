import * as Effect from "effect/Effect"
import type { AccountFilterWord, AccountStatus } from "../domain/Account.ts"
import type { AccountId } from "../domain/Id.ts"
import { int, name, nullable, text, uuid, uuidBytes } from "../engine/sql/Column.ts"
import { perFilters } from "../engine/sql/Filters.ts"
import { keptTotal } from "../engine/sql/KeptCounts.ts"
import { first, lenient, lenientFirst } from "../engine/sql/Query.ts"
import type { Fragments } from "../engine/sql/Statement.ts"
import { select, statement } from "../engine/sql/Statement.ts"
import { accountColumns } from "./AccountRows.ts"

/* Finds accounts for operators, either by id in any profile, or with any combination of filters. */

const record = {
  ...accountColumns,
  eabKid: nullable(uuidBytes),
  createdAt: int,
  createdIp: nullable(text()),
  createdPtr: nullable(text()),
  lastSeenPtr: nullable(text()),
  blockReason: nullable(text())
}

/** An account with everything that operators can see about it. Times are epoch seconds. */
export type AccountRecord = NonNullable<Effect.Success<ReturnType<typeof findRecord>>>

/** The filters of a list. A filter that is absent excludes nothing. */
export interface AccountFilters {
  readonly profile?: string | undefined
  readonly status?: AccountFilterWord | undefined
  /** The credential that bound the account. */
  readonly eabKid?: string | undefined
}

const filterColumns = { profile: name(), status: text<AccountFilterWord>(), eabKid: uuidBytes }

/**
 * The names of the conditions. The status has three conditions, because nearly all accounts are `valid`, and indexes
 * cover the accounts that have ended and those that are blocked.
 */
type Narrowing = Exclude<keyof AccountFilters, "status"> | "valid" | "ended" | "blocked"

const conditions: { readonly [F in Narrowing]: string } = {
  profile: "a.profile = :profile",
  valid: "a.status = 'valid'",
  ended: "a.status <> 'valid' AND a.status = :status",
  blocked: "a.blocked_at IS NOT NULL AND a.status = 'valid'",
  eabKid: "a.eab_kid = :eabKid"
}

const narrowings = ["profile", "valid", "ended", "blocked", "eabKid"] as const
const statuses = ["valid", "ended", "blocked"] as const

const narrowed = ({ status, ...others }: AccountFilters): { readonly [_ in Narrowing]?: unknown } =>
  status === undefined ? others : { ...others, [status === "valid" || status === "blocked" ? status : "ended"]: true }

/** Returns the index that covers the few accounts with such a status, if there is one. */
const indexOf = (used: ReadonlyArray<Narrowing>) =>
  used.includes("ended") ? ["accounts_ended"] : used.includes("blocked") ? ["accounts_blocked"] : []

const whereOf = (
  used: ReadonlyArray<Narrowing>,
  { indexedBy }: Pick<Fragments, "indexedBy">,
  stated: typeof conditions = conditions
): string =>
  `${used.includes("eabKid") ? "" : indexOf(used).map(indexedBy).join("")} WHERE ${
    used.map((name) => stated[name]).join(" AND ") || "1 = 1"
  }`

const byTime = {
  order: "a.created_at DESC, a.id DESC",
  // The first comparison lets the engine read a range of an index. The OR alone would not.
  behind: "a.created_at <= :beforeTime AND (a.created_at < :beforeTime OR a.id < :beforeId)"
}

/** Ids begin with the time at which the account was created. */
const byId = { order: "a.id DESC", behind: "a.id < :beforeId" }

/**
 * Returns the conditions of {@link whereOf}, the sort order of a list, and the condition that an account follows
 * another one in it. The index that begins with the profile is not used for ended or blocked accounts, which have an
 * index by time alone, or for the accounts of a credential, which are few.
 */
const listedBy = (used: ReadonlyArray<Narrowing>, f: Fragments) => {
  if (indexOf(used).length > 0 || used.includes("eabKid")) return { where: whereOf(used, f), ...byTime }
  if (!used.includes("profile")) return { where: whereOf(used, f), ...byId }
  const stated = { ...conditions, profile: f.leads("a.profile", ":profile") }
  return { ...byTime, where: whereOf(used, f, stated), order: f.ledBy("a.profile", byTime.order) }
}

const pageStatement = perFilters(narrowings, (used) =>
  statement({
    name: "account_search",
    params: { ...filterColumns, limit: int, offset: int },
    row: record,
    sql: (f) => {
      const { order, where } = listedBy(used, f)
      return `SELECT ${select(record, "a")} FROM accounts a ${where} ORDER BY ${order} LIMIT :limit OFFSET :offset`
    }
  }), statuses)

const countStatement = perFilters(narrowings, (used) =>
  statement({
    name: "account_search_count",
    params: filterColumns,
    row: { total: int },
    sql: (f) => `SELECT count(*) AS "total" FROM accounts a ${whereOf(used, f)}`
  }), statuses)

const behindStatement = perFilters(narrowings, (used) =>
  statement({
    name: "account_search_behind",
    params: { ...filterColumns, beforeTime: int, beforeId: uuid<AccountId>(), limit: int },
    row: record,
    sql: (f) => {
      const { behind, order, where } = listedBy(used, f)
      return `SELECT ${select(record, "a")} FROM accounts a ${where} AND ${behind}
       ORDER BY ${order} LIMIT :limit`
    }
  }), statuses)

const recordStatement = statement({
  name: "account_record",
  params: { id: uuid<AccountId>() },
  row: record,
  sql: () => `SELECT ${select(record, "a")} FROM accounts a WHERE a.id = :id`
})

const nobody = "00000000-0000-0000-0000-000000000000"

const valuesOf = ({ eabKid = nobody, profile = "", status = "valid" }: AccountFilters) =>
  ({ profile, status, eabKid }) as const

/** Finds an account by its id, in any profile. */
export const findRecord = (id: AccountId) => lenientFirst(recordStatement, { id })

/** Returns a page of matching accounts, newest first. */
export const search = (filters: AccountFilters, page: { readonly limit: number; readonly offset: number }) =>
  lenient(pageStatement(narrowed(filters)), { ...valuesOf(filters), ...page })

const countStated = (filters: AccountFilters) =>
  Effect.map(first(countStatement(narrowed(filters)), valuesOf(filters)), (row) => row?.total ?? 0)

/** The statuses that few accounts have. */
const ended = ["deactivated", "revoked"] as const satisfies ReadonlyArray<AccountStatus>

// Valid accounts are counted as all accounts minus the ended accounts, because both of these can be counted from an
// index.
const countOnce = (filters: AccountFilters) =>
  filters.status !== "valid" || filters.eabKid !== undefined ? countStated(filters) : Effect.zipWith(
    countStated({ ...filters, status: undefined }),
    Effect.forEach(ended, (status) => countStated({ ...filters, status })),
    (total, counts) => Math.max(0, counts.reduce((left, many) => left - many, total))
  )

/** Returns how many accounts match. The number may be slightly out of date ({@link keptTotal}). */
export const countMatches = (filters: AccountFilters) => keptTotal("account_search_count", filters, countOnce(filters))

/** Returns the matching accounts that follow a given account, newest first. */
export const behind = (
  filters: AccountFilters,
  before: { readonly beforeTime: number; readonly beforeId: AccountId; readonly limit: number }
) => lenient(behindStatement(narrowed(filters)), { ...valuesOf(filters), ...before })

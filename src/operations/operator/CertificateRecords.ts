import * as Effect from "effect/Effect"
import type { CertificateState } from "../../domain/CertificateState.ts"
import { stateOf } from "../../domain/CertificateState.ts"
import type { OrderId } from "../../domain/Id.ts"
import { BadRequest } from "../../domain/OperatorError.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { Config } from "../../settings/AppConfig.ts"
import * as accountLabels from "../../store/AccountLabels.ts"
import * as certificateSearch from "../../store/orders/CertificateSearch.ts"
import type { EndRange } from "../../store/orders/EndRange.ts"
import type { ListedOrder } from "../../store/orders/OrderSearch.ts"
import { shown } from "../Expiring.ts"
import { usualDaysOf } from "./ExpiringRecords.ts"
import { readForOperator } from "./OperatorReads.ts"
import type { ListFilters } from "./OrderRecords.ts"
import * as orders from "./OrderRecords.ts"

/* Lists certificates. A certificate is an order that has one, so the searches of orders find it. */

/**
 * The orders of the list: the certificates that were ordered last come first, or those that end soonest, or those that
 * end latest.
 */
export const certificateSorts = ["newest", "soonest", "latest"] as const
export type CertificateSort = (typeof certificateSorts)[number]

/** The filters of the list. A filter that is absent excludes nothing. */
export type CertificateFilters =
  & Pick<
    ListFilters,
    "accountId" | "certSerial" | "identifier" | "identifierContains" | "identifierSuffix" | "kind" | "profile"
  >
  & {
    readonly state?: CertificateState | undefined
    /** The first second at which a certificate may end. */
    readonly endsAfter?: number | undefined
    /** The first second at which a certificate may no longer end. */
    readonly endsBefore?: number | undefined
  }

/** The filters that have no index in the order of the ends. */
const byName = ["accountId", "certSerial", "identifier", "identifierContains", "identifierSuffix", "kind"] as const

const byNameIn = (filters: CertificateFilters) => byName.filter((name) => filters[name] !== undefined)

/**
 * Returns the order of a list. A list of certificates by their ends is in the order of the ends, unless another filter
 * finds few certificates.
 */
export const sortOf = (filters: CertificateFilters, wanted: CertificateSort | undefined): CertificateSort => {
  if (wanted !== undefined) return wanted
  const isByEnd = filters.endsAfter !== undefined || filters.endsBefore !== undefined
  if (byNameIn(filters).length > 0) return "newest"
  if (filters.state === "ended") return "latest"
  return isByEnd || filters.state === "valid" || filters.state === "ending" ? "soonest" : "newest"
}

/** Returns whether a list with these filters can be in the order of the ends. */
export const canSortByEnd = (filters: CertificateFilters): boolean => byNameIn(filters).length === 0

/** Refuses an order that no index has together with the filters. */
export const checkSort = (filters: CertificateFilters, sort: CertificateSort | undefined) =>
  sort === undefined || sort === "newest" || canSortByEnd(filters) ? Effect.void : new BadRequest({
    detail: `sort takes ${sort} only with profile, state, endsAfter and endsBefore, not with ${
      byNameIn(filters).join(", ")
    }.`
  })

const daySeconds = 86_400

/** Returns how many seconds before its end a certificate is `ending`: the days of the profile's digest. */
const soonOf = (config: Pick<Config, "profiles">, profile?: string): number => usualDaysOf(config, profile) * daySeconds

const ranges: { readonly [S in CertificateState]: (now: number, soon: number) => EndRange } = {
  valid: (now, soon) => ({ after: now + soon, upTo: Number.MAX_SAFE_INTEGER, isLiveOnly: true }),
  ending: (now, soon) => ({ after: now, upTo: now + soon, isLiveOnly: true }),
  ended: (now) => ({ after: -1, upTo: now, isLiveOnly: true }),
  revoked: () => everyEnd
}

const everyEnd: EndRange = { after: -1, upTo: Number.MAX_SAFE_INTEGER, isLiveOnly: false }

/** Returns when the wanted certificates end, or undefined if that does not matter. */
const endsOf = (
  { endsAfter, endsBefore, state }: CertificateFilters,
  now: number,
  soon: number
): EndRange | undefined => {
  const range = state === undefined ? everyEnd : ranges[state](now, soon)
  if (endsAfter === undefined && endsBefore === undefined && range === everyEnd) return undefined
  return {
    after: Math.max(range.after, (endsAfter ?? 0) - 1),
    upTo: Math.min(range.upTo, (endsBefore ?? Number.MAX_SAFE_INTEGER) - 1),
    isLiveOnly: range.isLiveOnly
  }
}

/** A certificate as the list shows it. */
export interface ListedCertificate {
  readonly order: ListedOrder
  readonly state: CertificateState
  /** What people call the account. */
  readonly accountLabel: string | undefined
  /** The order of the certificate that replaces it. Only looked for if the certificate ends soon. */
  readonly replacedBy: OrderId | undefined
}

/** Adds to orders what a list of certificates shows besides. */
export const described = Effect.fnUntraced(function*(
  config: Pick<Config, "profiles">,
  found: ReadonlyArray<ListedOrder>,
  profile?: string
) {
  const now = yield* currentSeconds
  const soon = soonOf(config, profile)
  const states = found.map((order) => stateOf(order, now, soon))
  const ending = found.flatMap(({ id }, number) => states[number] === "ending" ? [{ id, isCovered: 1 }] : [])
  return yield* readForOperator(Effect.gen(function*() {
    const labels = yield* accountLabels.labelsOf(found.map(({ accountId }) => accountId))
    const replaced = new Map((yield* shown(ending, now)).map(({ order, supersededBy }) => [order.id, supersededBy]))
    return found.map((order, number): ListedCertificate => ({
      order,
      state: states[number] ?? "valid",
      accountLabel: labels.get(order.accountId),
      replacedBy: replaced.get(order.id)?.order.id
    }))
  }))
})

/** Returns a page of certificates, and the number of matches. `truncated` means that a search ended early. */
export const list = Effect.fn("CertificateRecords.list")(function*(
  config: Pick<Config, "profiles">,
  { sort, ...filters }: CertificateFilters & { readonly sort?: CertificateSort | undefined },
  page: { readonly limit: number; readonly offset: number }
) {
  const { endsAfter: _, endsBefore: __, state, ...others } = filters
  const ends = endsOf(filters, yield* currentSeconds, soonOf(config, filters.profile))
  const isRevokedOnly = state === "revoked"
  const order = sortOf(filters, sort)
  const wanted = {
    profile: filters.profile,
    ends: ends ?? everyEnd,
    isRevokedOnly,
    isLastFirst: order === "latest"
  }
  const found = yield* order === "newest"
    ? orders.list({ ...others, status: isRevokedOnly ? "revoked" : "valid", ends }, page)
    : readForOperator(
      Effect.all({
        items: certificateSearch.byEnd(wanted, page),
        total: certificateSearch.count(wanted),
        truncated: Effect.succeed(false)
      })
    )
  return { ...found, items: yield* described(config, found.items, filters.profile) }
})

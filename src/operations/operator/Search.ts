import * as Effect from "effect/Effect"
import { parseSerial } from "../../crypto/x509/Serial.ts"
import { AccountId, isId, OrderId } from "../../domain/Id.ts"
import { JobId } from "../../engine/queue/Job.ts"
import * as jobRecords from "../../engine/queue/JobRecords.ts"
import * as accountSearch from "../../store/AccountSearch.ts"
import * as eabKeys from "../../store/eab/EabKeys.ts"
import * as orderLookup from "../../store/orders/OrderLookup.ts"
import type { ListedOrder } from "../../store/orders/OrderSearch.ts"
import * as orderSearch from "../../store/orders/OrderSearch.ts"
import * as auditTrail from "./AuditTrail.ts"
import { readForOperator } from "./OperatorReads.ts"
import * as orders from "./OrderRecords.ts"

/*
 * The search box. It accepts one text and decides what the text may mean (docs/decisions/admin.md, "Names and
 * searches").
 */

/** The kind of a result. */
export type ResultKind =
  | "account"
  | "order"
  | "authorization"
  | "challenge"
  | "job"
  | "eab"
  | "audit"
  | "operator"

/** One result, with its page in the panel. */
export interface SearchResult {
  readonly kind: ResultKind
  readonly id: string
  readonly profile?: string
  readonly label: string
  readonly url: string
}

/** An operator whose name was found. */
export interface FoundOperator {
  readonly username: string
}

/**
 * Whether the caller may see operators, and how operators are looked up. If the caller must not see operators, none are
 * found.
 */
export interface Searching<E, R> {
  readonly maySeeOperators: boolean
  /** Returns a few operators whose name contains this text. */
  readonly operators: (text: string, limit: number) => Effect.Effect<ReadonlyArray<FoundOperator>, E, R>
}

const most = 5

/** The highest number of characters that the search box accepts. */
export const longestQuery = 253

const orderResult = ({ id, identifiers, profile, revokedAt, status }: ListedOrder): SearchResult => ({
  kind: "order",
  id,
  profile,
  label: `${identifiers.map(({ value }) => value).join(" ")} (${revokedAt === undefined ? status : "revoked"})`,
  url: `/ui/orders/${id}`
})

const some = <A>(found: A | undefined, result: (found: A) => SearchResult): ReadonlyArray<SearchResult> =>
  found === undefined ? [] : [result(found)]

/** Finds the records with this id. If there are none, finds the rows of the audit trail whose request has this id. */
const byId = Effect.fnUntraced(function*(id: string) {
  const [account, order, job, credential] = [
    yield* accountSearch.findRecord(AccountId(id)),
    yield* orderSearch.findRecord(OrderId(id)),
    yield* jobRecords.find(JobId(id)),
    yield* eabKeys.find(id)
  ]
  const part = (kind: "authorization" | "challenge") =>
  (
    { orderId, profile }: { readonly orderId: OrderId; readonly profile: string }
  ): SearchResult => ({ kind, id, profile, label: `${kind} of order ${orderId}`, url: `/ui/orders/${orderId}` })
  const records = [
    ...some(account, ({ contact, profile, status }): SearchResult => ({
      kind: "account",
      id,
      profile,
      label: `${contact.join(" ") || "account"} (${status})`,
      url: `/ui/accounts/${id}`
    })),
    ...some(order, orderResult),
    ...some(yield* orderLookup.findByAuthorization(id), part("authorization")),
    ...some(yield* orderLookup.findByChallenge(id), part("challenge")),
    ...some(job, ({ kind, status }): SearchResult => ({
      kind: "job",
      id,
      label: `${kind} (${status})`,
      url: `/ui/jobs/${id}`
    })),
    ...some(credential, ({ label, profile, status }): SearchResult => ({
      kind: "eab",
      id,
      ...(profile === undefined ? {} : { profile }),
      label: `${label ?? "credential"} (${status})`,
      url: `/ui/eab/${id}`
    }))
  ]
  return records.length > 0 ? { results: records, truncated: false } : yield* byRequest(id)
})

const byRequest = (requestId: string) =>
  Effect.map(auditTrail.list({ requestId }, { limit: most, offset: 0 }), ({ items, truncated }) => ({
    results: items.map(({ event, id, profile }): SearchResult => ({
      kind: "audit",
      id: String(id),
      ...(profile === undefined ? {} : { profile }),
      label: event,
      url: `/ui/audit/${id}`
    })),
    truncated
  }))

/**
 * Finds orders with this name, then orders with names that end with it. Each order is listed once. Names that merely
 * contain the text are searched only if no such order exists, because that search walks over all names.
 */
const byName = Effect.fnUntraced(function*(text: string) {
  const page = { limit: most, offset: 0 }
  const name = text.toLowerCase().replace(/\.$/, "")
  const found = new Map<string, ListedOrder>()
  for (const filters of [{ identifier: name }, { identifierSuffix: name.replace(/^\./, "") }]) {
    if (found.size >= most) break
    for (const order of (yield* orders.list(filters, page, false)).items) found.set(order.id, order)
  }
  const rest = found.size > 0 ? undefined : yield* orders.list({ identifierContains: name }, page, false)
  return {
    results: [...found.values(), ...rest?.items ?? []].slice(0, most).map(orderResult),
    truncated: rest?.truncated === true && rest.items.length < most
  }
})

const serialShape = /^(?:[0-9a-f][:\s]*){8,}$/i

/**
 * Finds the records that a text may mean, judged by its form: an id, a serial number, or a name. There are at most five
 * results of each kind. `isExact` means that the text cannot mean anything else.
 */
export const search = Effect.fn("Search.search")(
  function*<E, R>(text: string, { maySeeOperators, operators }: Searching<E, R>) {
    const query = text.trim()
    if (isId(query.toLowerCase())) return { query, isExact: true, ...yield* readForOperator(byId(query.toLowerCase())) }
    const serial = serialShape.test(query) ? parseSerial(query) : undefined
    if (serial !== undefined) {
      const found = yield* readForOperator(orderSearch.search({ certSerial: serial }, { limit: most, offset: 0 }))
      return { query, isExact: true, results: found.map(orderResult), truncated: false }
    }
    if (query.includes("@")) {
      return {
        query,
        isExact: false,
        results: [],
        truncated: false,
        hint: "Contacts are not searched; search for the id of the account, or for one of its orders."
      }
    }
    const named = yield* readForOperator(byName(query))
    const people = maySeeOperators ? yield* operators(query.toLowerCase(), most) : []
    return {
      query,
      isExact: false,
      results: [
        ...named.results,
        ...people.slice(0, most).map(({ username }): SearchResult => ({
          kind: "operator",
          id: username,
          label: username,
          url: `/ui/operators/${username}`
        }))
      ],
      truncated: named.truncated
    }
  }
)

/** Returns the result of {@link search} as the JSON object of an answer, without the members that do not apply. */
export const searchObject = (
  found: {
    readonly query: string
    readonly results: ReadonlyArray<SearchResult>
    readonly truncated?: boolean | undefined
    readonly hint?: string | undefined
  }
) => ({
  query: found.query,
  results: found.results,
  ...(found.truncated === true ? { truncated: true } : {}),
  ...(found.hint === undefined ? {} : { hint: found.hint })
})

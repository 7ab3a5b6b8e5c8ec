import * as Effect from "effect/Effect"
import { parseSerial } from "../../crypto/x509/Serial.ts"
import { accountState } from "../../domain/Account.ts"
import { AccountId, isId, OrderId } from "../../domain/Id.ts"
import type { Busy } from "../../domain/OperatorError.ts"
import { comparable } from "../../engine/net/Address.ts"
import { JobId } from "../../engine/queue/Job.ts"
import * as jobRecords from "../../engine/queue/JobRecords.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import * as accountFinding from "../../store/AccountFinding.ts"
import { mostSearched } from "../../store/AccountFinding.ts"
import * as accountSearch from "../../store/AccountSearch.ts"
import * as eabKeys from "../../store/eab/EabKeys.ts"
import * as orderLookup from "../../store/orders/OrderLookup.ts"
import type { ListedOrder } from "../../store/orders/OrderSearch.ts"
import * as orderSearch from "../../store/orders/OrderSearch.ts"
import { bySerialPrefix } from "../../store/orders/SerialPrefix.ts"
import * as auditTrail from "./AuditTrail.ts"
import { readForOperator } from "./OperatorReads.ts"
import * as orders from "./OrderRecords.ts"

/*
 * The search box. It accepts one text and decides what the text may mean (docs/contribute/decisions/admin.md, "Names
 * and searches").
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
  /** Whether the text is still being typed. */
  readonly isTyping?: boolean
  /** Returns a few operators whose name contains this text. */
  readonly operators: (text: string, limit: number) => Effect.Effect<ReadonlyArray<FoundOperator>, E, R>
}

/** What a text has found. */
export interface Found {
  readonly query: string
  /** Whether the text cannot mean anything else. */
  readonly isExact: boolean
  readonly results: ReadonlyArray<SearchResult>
  /** Whether there may be more. */
  readonly truncated: boolean
  /** What the reader can do to find more. */
  readonly hint?: string | undefined
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
    ...some(account, accountResult),
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
const byName = Effect.fnUntraced(function*(text: string, isTyping: boolean) {
  const page = { limit: most, offset: 0 }
  const name = text.toLowerCase().replace(/\.$/, "")
  const found = new Map<string, ListedOrder>()
  for (const filters of [{ identifier: name }, { identifierSuffix: name.replace(/^\./, "") }]) {
    if (found.size >= most) break
    for (const order of (yield* orders.list(filters, page, false)).items) found.set(order.id, order)
  }
  const rest = found.size > 0 || isTyping ? undefined : yield* orders.list({ identifierContains: name }, page, false)
  return {
    results: [...found.values(), ...rest?.items ?? []].slice(0, most).map(orderResult),
    truncated: rest?.truncated === true && rest.items.length < most
  }
})

const accountResult = (
  { blockedAt, contact, id, profile, status }: Effect.Success<ReturnType<typeof accountFinding.withContact>>[number]
): SearchResult => ({
  kind: "account",
  id,
  profile,
  label: `${contact.join(" ") || "account"} (${accountState({ blockedAt, status })})`,
  url: `/ui/accounts/${id}`
})

const serialShape = /^(?:0x)?(?:[0-9a-f][:\s]*){6,}$/i
// A serial number of eight octets could also be an address of IPv6. Nobody writes an address in this way.
const octetsShape = /^[0-9a-f]{2}(?::[0-9a-f]{2})+$/i
const sureShape = /^0x|[:\s]/i
const fingerprintDigits = 64

/**
 * Finds orders by the serial number of their certificate, or by its first digits. `isExact` is true if a certificate
 * has exactly this serial number, or if only a serial number is written in this way (`0x…`, or with colons or blanks).
 */
const bySerial = Effect.fnUntraced(function*(query: string, serial: string) {
  const whole = yield* orderSearch.search({ certSerial: serial }, { limit: most, offset: 0 })
  const digits = query.replace(/^0x/i, "").replaceAll(/[:\s]/g, "").toLowerCase()
  const found = whole.length > 0 ? whole : yield* bySerialPrefix(digits, most)
  return { results: found.map(orderResult), isExact: whole.length > 0 || sureShape.test(query) }
})

const fingerprintHint =
  "This is as long as a SHA-256 fingerprint, and certificates are not stored by theirs. Search for the serial number, "
  + "which openssl x509 -noout -serial prints."

const narrowed = (found: ReadonlyArray<unknown>, what: string): string | undefined =>
  found.length > 0
    ? undefined
    : `No account has it. ${what}, among the newest ${mostSearched.toLocaleString("en")} accounts.`

/**
 * Finds the records that a text may mean, judged by its form: an id, a serial number or its beginning, a contact, an
 * address, or a name. There are at most five results of each kind. `isExact` means that the text cannot mean anything
 * else. While somebody types, names that merely contain the text are not searched, because that walks over all names.
 */
export const search = Effect.fn("Search.search")(
  function*<E, R>(
    text: string,
    { isTyping = false, maySeeOperators, operators }: Searching<E, R>
  ): Effect.fn.Return<Found, Busy | E | StorageFailed, Database | R> {
    const query = text.trim()
    if (isId(query.toLowerCase())) {
      return { query, isExact: true, ...yield* readForOperator(byId(query.toLowerCase())) }
    }
    const told = { query, isExact: false, truncated: false }
    const address = octetsShape.test(query) ? undefined : comparable(query)
    const serial = address === undefined && serialShape.test(query)
      ? parseSerial(query.replace(/^0x/i, ""))
      : undefined
    if (serial?.length === fingerprintDigits) return { ...told, results: [], hint: fingerprintHint }
    const numbered = serial === undefined
      ? { results: [], isExact: false }
      : yield* readForOperator(bySerial(query, serial))
    if (numbered.isExact) return { ...told, ...numbered }
    if (address !== undefined) {
      const found = yield* readForOperator(accountFinding.fromAddress(address.text, most))
      const hint = narrowed(found, "Searched are the addresses of the first and the last request of each account")
      return { ...told, results: found.map(accountResult), hint }
    }
    if (query.includes("@")) {
      const contact = query.replace(/^mailto:/i, "").toLowerCase()
      const found = yield* readForOperator(accountFinding.withContact(contact, most))
      return {
        ...told,
        results: found.map(accountResult),
        hint: narrowed(found, "Contacts are searched in every part")
      }
    }
    const named = yield* readForOperator(byName(query, isTyping))
    const people = maySeeOperators ? yield* operators(query.toLowerCase(), most) : []
    return {
      query,
      isExact: false,
      results: [
        ...numbered.results,
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

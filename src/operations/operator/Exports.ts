import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import * as Streams from "effect/Stream"
import { AccountId, OrderId } from "../../domain/Id.ts"
import { BadRequest, ExportTooLarge } from "../../domain/OperatorError.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { aside } from "../../engine/sql/Database.ts"
import { pages } from "../../engine/sql/Pages.ts"
import { currentMillis, currentSeconds } from "../../engine/Time.ts"
import type { Config } from "../../settings/AppConfig.ts"
import type { AccountFilters, AccountRecord } from "../../store/AccountSearch.ts"
import * as accountSearch from "../../store/AccountSearch.ts"
import type { AuditRecord } from "../../store/AuditSearch.ts"
import * as auditSearch from "../../store/AuditSearch.ts"
import type { Credential, EabStatus } from "../../store/eab/EabKeys.ts"
import * as eabKeys from "../../store/eab/EabKeys.ts"
import type { ListedOrder } from "../../store/orders/OrderSearch.ts"
import * as orderSearch from "../../store/orders/OrderSearch.ts"
import { auditObject } from "../AuditRowObject.ts"
import * as auditTrail from "./AuditTrail.ts"
import * as expiring from "./ExpiringRecords.ts"
import type { Format } from "./ExportText.ts"
import { exportText } from "./ExportText.ts"
import { hasName } from "./NameSearch.ts"
import { credentialObject, expiringObject, orderObject } from "./Objects.ts"
import { accountObject } from "./objects/AccountObjects.ts"
import { readForOperator } from "./OperatorReads.ts"
import * as orders from "./OrderRecords.ts"

/* Exports whole lists as files, newest first (docs/contribute/decisions/admin.md, "Exports"). */

/** The properties of a requested export. */
export interface Wish {
  readonly format: Format
  /** The highest number of rows. If it is absent, any number is allowed. */
  readonly most?: number | undefined
}

/** The highest number of rows that the API exports. */
export const mostOverApi = 100_000

/** A file that is sent while its rows are read. */
export interface Exported {
  /** The name of the list, for the log. */
  readonly list: string
  readonly format: Format
  readonly fileName: string
  readonly mediaType: string
  readonly text: Stream.Stream<string, StorageFailed, Database>
}

const mediaTypes: { readonly [F in Format]: string } = {
  csv: "text/csv; charset=utf-8; header=present",
  json: "application/json"
}

const batch = 1000

type Rows = Stream.Stream<ReadonlyArray<object>, StorageFailed, Database>

/**
 * Makes the file of an export, with its name. Refuses the export if there are more rows than the request allows. No
 * transaction spans several pages.
 */
const exported = Effect.fnUntraced(function*<E, R>(
  { format, most }: Wish,
  list: {
    readonly name: string
    readonly columns: string
    readonly rows: Rows
    readonly total: Effect.Effect<number, E, R>
  }
) {
  if (most !== undefined) {
    const rows = yield* list.total
    if (rows > most) return yield* new ExportTooLarge({ rows, most })
  }
  const at = new Date(yield* currentMillis).toISOString().replaceAll(/[-:]|\.\d+/g, "")
  const file: Exported = {
    list: list.name,
    format,
    fileName: `acme-svc-${list.name}-${at}.${format}`,
    mediaType: mediaTypes[format],
    text: exportText(
      format,
      list.columns.split(" "),
      list.rows as Stream.Stream<ReadonlyArray<Row>, StorageFailed, Database>
    )
  }
  return file
})

type Row = { readonly [member: string]: unknown }

const latest = Number.MAX_SAFE_INTEGER
const lastId = "ffffffff-ffff-ffff-ffff-ffffffffffff"

/**
 * Streams all rows of a list in the order of its key, one page at a time. Each page is read on a separate connection.
 */
const keyset = <A extends { readonly createdAt: number }, Id>(
  from: Id,
  idOf: (row: A) => Id,
  read: (before: { readonly beforeTime: number; readonly beforeId: Id; readonly limit: number }) => Effect.Effect<
    ReadonlyArray<A>,
    StorageFailed,
    Database
  >
) =>
  pages<A, { readonly beforeTime: number; readonly beforeId: Id }, StorageFailed, Database>({
    from: { beforeTime: latest, beforeId: from },
    size: batch,
    read: (before, limit) => aside(read({ ...before, limit })),
    keyOf: (row) => ({ beforeTime: row.createdAt, beforeId: idOf(row) })
  })

/** Exports orders, without their PEM. */
export const ordersFile = Effect.fn("Exports.ordersFile")(function*(
  config: Config,
  filters: orders.ListFilters,
  wish: Wish
) {
  const sought = yield* readForOperator(orders.soughtBy(filters))
  const { identifierContains: _, ...others } = filters
  const indexed = sought === undefined ? others : { ...others, identifierSuffix: undefined }
  const now = yield* currentSeconds
  const found = keyset<ListedOrder, OrderId>(
    OrderId(lastId),
    ({ id }) => id,
    (before) => orderSearch.behind(indexed, before)
  )
  return yield* exported(wish, {
    name: "orders",
    columns:
      "id profile accountId status identifiers kind createdAt expires url notBefore notAfter error replaces certSerial certNotAfter revokedAt revocationReason createdIp createdPtr",
    rows: Streams.map(
      found,
      (page) =>
        (sought === undefined ? page : page.filter(hasName(sought))).map((order) => orderObject(config, order, now))
    ),
    total: Effect.flatMap(
      orders.list(filters, { limit: 1, offset: 0 }),
      ({ total, truncated }) => truncated ? new BadRequest({ detail: tooWide }) : Effect.succeed(total)
    )
  })
})

const tooWide = "The search for a part of a name ended early; narrow it by account or time."

/** Exports accounts. */
export const accountsFile = (filters: AccountFilters, wish: Wish) =>
  exported(wish, {
    name: "accounts",
    columns:
      "id profile status contact termsOfServiceAgreed pubkeyFingerprint keyType eabKid createdAt createdIp createdPtr lastSeenAt lastSeenIp lastSeenPtr blockedAt blockReason",
    rows: Streams.map(
      keyset<AccountRecord, AccountId>(AccountId(lastId), ({ id }) =>
        id, (before) =>
        accountSearch.behind(filters, before)),
      (page) =>
        page.map(accountObject)
    ),
    total: readForOperator(accountSearch.countMatches(filters))
  })

const tooMany = "Too many rows have this request; use `audit export` on the command line, which has no bound."

/**
 * Exports the audit trail. Over the API, the rows of one request are exported only if the search with a limit finds all
 * of them.
 */
export const auditFile = Effect.fn("Exports.auditFile")(function*(filters: auditTrail.TrailFilters, wish: Wish) {
  const { requestId, ...indexed } = filters
  const found = keyset<AuditRecord, number>(
    latest,
    ({ id }) => id,
    (before) => requestId === undefined ? auditSearch.behind(indexed, before) : auditSearch.ofRequest(requestId, before)
  )
  const isWanted = requestId === undefined ? () => true : auditTrail.isMatch(indexed)
  return yield* exported(wish, {
    name: "audit",
    columns:
      "id createdAt event outcome actorKind actorId profile accountId orderId certSerial identifiers clientIp clientPtr userAgent requestId reason detail",
    rows: Streams.map(found, (page) => page.filter(isWanted).map(auditObject)),
    total: Effect.flatMap(
      auditTrail.list(filters, { limit: 1, offset: 0 }),
      ({ total, truncated }) => truncated ? new BadRequest({ detail: tooMany }) : Effect.succeed(total)
    )
  })
})

/** Exports credentials for external account binding, without their secrets. */
export const eabFile = (filters: { readonly status: EabStatus | undefined }, wish: Wish) =>
  exported(wish, {
    name: "eab",
    columns: "kid label profile status createdAt accounts",
    rows: Streams.map(
      keyset<Credential, string>(lastId, ({ kid }) =>
        kid, ({ beforeId: beforeKid, beforeTime, limit }) =>
        eabKeys.behind({ ...filters, beforeKid, beforeTime, limit })),
      (page) =>
        page.map(credentialObject)
    ),
    total: readForOperator(eabKeys.count(filters.status))
  })

/** Exports certificates that expire soon, soonest first. */
export const expiringFile = (wanted: expiring.Wanted, wish: Wish) =>
  exported(wish, {
    name: "expiring",
    columns: "orderId profile accountId certSerial identifiers kind notAfter daysRemaining supersededBy",
    rows: Streams.map(expiring.every(wanted), (page) => page.map(expiringObject)),
    // Rows that were not counted could exceed the limit.
    total: Effect.map(
      expiring.list(wanted, { limit: 1, offset: 0 }, Number.POSITIVE_INFINITY),
      ({ hidden, total }) => total - hidden
    )
  })

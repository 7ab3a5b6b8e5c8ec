import * as Effect from "effect/Effect"
import type { OrderId } from "../../domain/Id.ts"
import { bytes, int, nullable, rows, text, uuid } from "../../engine/sql/Column.ts"
import { all, first, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/*
 * What a relay stores about its orders at the upstream. There is one row for each local order, with the id of that
 * order.
 */

/** The status of a relayed order. */
export type UpstreamStatus = "processing" | "valid" | "invalid"

const insertStatement = statement({
  name: "upstream_order_insert",
  params: {
    orderId: uuid<OrderId>(),
    csr: bytes,
    clientIp: nullable(text()),
    clientPtr: nullable(text()),
    userAgent: nullable(text()),
    requestId: nullable(text()),
    now: int
  },
  row: {},
  sql: () =>
    `INSERT INTO upstream_orders (order_id, status, csr_der, client_ip, client_ptr, user_agent, request_id, created_at, updated_at)
     VALUES (:orderId, 'processing', :csr, :clientIp, :clientPtr, :userAgent, :requestId, :now, :now)`
})

const findStatement = statement({
  name: "upstream_order_by_id",
  params: { orderId: uuid<OrderId>() },
  row: {
    status: text<UpstreamStatus>(),
    orderUrl: nullable(text()),
    finalizeUrl: nullable(text()),
    certificateUrl: nullable(text()),
    csr: bytes,
    clientIp: nullable(text()),
    clientPtr: nullable(text()),
    userAgent: nullable(text()),
    requestId: nullable(text()),
    startedAt: nullable(int),
    asks: int,
    askedAt: nullable(int)
  },
  sql: () =>
    `SELECT status AS "status", upstream_order_url AS "orderUrl", upstream_finalize_url AS "finalizeUrl",
       upstream_certificate_url AS "certificateUrl", csr_der AS "csr", client_ip AS "clientIp", client_ptr AS "clientPtr",
       user_agent AS "userAgent", request_id AS "requestId", started_at AS "startedAt",
       asks AS "asks", asked_at AS "askedAt"
     FROM upstream_orders WHERE order_id = :orderId`
})

const startStatement = statement({
  name: "upstream_order_start",
  params: { orderId: uuid<OrderId>(), now: int },
  row: { startedAt: int },
  sql: ({ checked }) =>
    `UPDATE upstream_orders SET started_at = coalesce(started_at, :now), updated_at = :now
     WHERE order_id = :orderId AND ${checked("status")} = 'processing' RETURNING started_at AS "startedAt"`
})

const askedStatement = statement({
  name: "upstream_order_asked",
  params: { orderId: uuid<OrderId>(), asks: int, now: int },
  row: {},
  sql: ({ checked }) =>
    `UPDATE upstream_orders SET asks = :asks, asked_at = :now, updated_at = :now
     WHERE order_id = :orderId AND upstream_order_url IS NULL AND ${checked("status")} = 'processing'`
})

// An upstream may answer a repeated request with the unfinished order of the earlier request. RFC 8555 does not forbid
// this, and large CAs do it.
const givenUpStatement = statement({
  name: "upstream_order_given_up",
  params: { orderUrl: text() },
  row: { id: uuid<OrderId>() },
  sql: () =>
    `UPDATE upstream_orders SET upstream_order_url = NULL WHERE upstream_order_url = :orderUrl AND status NOT IN ('processing', 'valid')
     RETURNING order_id AS "id"`
})

const openedStatement = statement({
  name: "upstream_order_opened",
  params: { orderId: uuid<OrderId>(), orderUrl: text(), finalizeUrl: nullable(text()), now: int },
  row: { orderUrl: text() },
  sql: () =>
    `UPDATE upstream_orders SET upstream_order_url = :orderUrl, upstream_finalize_url = :finalizeUrl, updated_at = :now
     WHERE order_id = :orderId AND upstream_order_url IS NULL AND NOT EXISTS
       (SELECT 1 FROM upstream_orders AS taken WHERE taken.upstream_order_url = :orderUrl)
     RETURNING upstream_order_url AS "orderUrl"`
})

const issuedStatement = statement({
  name: "upstream_order_issued",
  params: { orderId: uuid<OrderId>(), certificateUrl: text(), now: int },
  row: {},
  sql: () =>
    `UPDATE upstream_orders SET upstream_certificate_url = :certificateUrl, updated_at = :now WHERE order_id = :orderId`
})

const endStatement = statement({
  name: "upstream_order_end",
  params: {
    orderId: uuid<OrderId>(),
    status: text<UpstreamStatus>(),
    error: nullable(text()),
    due: nullable(int),
    now: int
  },
  row: {},
  sql: ({ checked }) =>
    `UPDATE upstream_orders SET status = :status, error = :error, updated_at = :now,
       renewal_due = :due
     WHERE order_id = :orderId AND ${checked("status")} = 'processing'`
})

const claimedStatement = statement({
  name: "upstream_order_claimed",
  params: { urls: rows },
  row: { orderUrl: text() },
  sql: ({ oneOf }) =>
    `SELECT upstream_order_url AS "orderUrl" FROM upstream_orders WHERE upstream_order_url ${oneOf(":urls", "text")}`
})

const longestError = 2000

/** Inserts the row of an order that will be relayed. The CSR is DER. */
export const insert = (row: {
  readonly orderId: OrderId
  readonly csr: Uint8Array
  readonly client: {
    readonly ip?: string | undefined
    readonly ptr?: string | undefined
    readonly user_agent?: string | undefined
    readonly request_id?: string | undefined
  }
  readonly now: number
}) => {
  const { client, csr, now, orderId } = row
  return run(insertStatement, {
    orderId,
    csr,
    now,
    clientIp: client.ip,
    clientPtr: client.ptr,
    userAgent: client.user_agent,
    requestId: client.request_id
  })
}

/** Finds the row of an order. */
export const find = (orderId: OrderId) => first(findStatement, { orderId })

/**
 * Stores the time of the first attempt, unless it is already stored, and returns the stored time. Returns `undefined`
 * if the relaying has ended.
 */
export const start = (orderId: OrderId, now: number) =>
  Effect.map(first(startStatement, { orderId, now }), (row) => row?.startedAt)

/** Stores how often the upstream was asked to open the order but did not return its URL. */
export const asked = (of: { readonly orderId: OrderId; readonly asks: number; readonly now: number }) =>
  run(askedStatement, of)

/**
 * Stores the order that the upstream opened. If a URL is already stored, that URL stays. Returns whether the given URL
 * was stored. A URL can belong to only one order, so one of two concurrent writes of the same URL fails.
 */
export const opened = (of: {
  readonly orderId: OrderId
  readonly orderUrl: string
  readonly finalizeUrl: string | undefined
  readonly now: number
}) => {
  const keep = Effect.map(first(openedStatement, of), (kept) => kept !== undefined)
  const takeOver = Effect.flatMap(
    first(givenUpStatement, of),
    (former) => former === undefined ? Effect.succeed(false) : keep
  )
  return Effect.flatMap(keep, (isKept) => isKept ? Effect.succeed(true) : takeOver)
}

/** Stores the URL of the certificate. */
export const issued = (of: { readonly orderId: OrderId; readonly certificateUrl: string; readonly now: number }) =>
  run(issuedStatement, of)

/** Ends the relaying. `error` is the upstream's own text, or says why the order was given up. */
export const end = (of: {
  readonly orderId: OrderId
  readonly status: Exclude<UpstreamStatus, "processing">
  readonly error: string | undefined
  readonly now: number
}) =>
  run(endStatement, {
    ...of,
    error: of.error?.slice(0, longestError),
    due: of.status === "valid" ? of.now : undefined
  })

/**
 * Of the given URLs of upstream orders, returns those that belong to a local order. The state of the local order does
 * not matter.
 */
export const claimed = (urls: ReadonlyArray<string>) =>
  Effect.map(
    all(claimedStatement, { urls: urls.map((url) => [url] as const) }),
    (found) => found.map(({ orderUrl }) => orderUrl)
  )

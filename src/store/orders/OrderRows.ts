import * as Effect from "effect/Effect"
import type { AccountStatus } from "../../domain/Account.ts"
import type { AccountId, OrderId } from "../../domain/Id.ts"
import { AuthorizationId } from "../../domain/Id.ts"
import type { OrderStatus } from "../../domain/Order.ts"
import { orderMoves } from "../../domain/Order.ts"
import type { ProblemDocument } from "../../domain/ProblemDocument.ts"
import { signingKinds } from "../../domain/words/JobKind.ts"
import type { Column, Columns } from "../../engine/sql/Column.ts"
import { bytes, int, name, nullable, text, texts, uuid, uuidBytes } from "../../engine/sql/Column.ts"
import { distinct } from "../../engine/sql/Distinct.ts"
import { leaving, reached } from "../../engine/sql/Guard.ts"
import { first, lenient, run } from "../../engine/sql/Query.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"
import { select, statement } from "../../engine/sql/Statement.ts"
import { identifiersColumn, problemColumn } from "../Columns.ts"
import { unburnt } from "../revocation/BurntKeys.ts"
import { uncompromised } from "../revocation/CompromisedIssuers.ts"
import { lockRow } from "../RowLock.ts"
import type { Alive } from "./Lifetime.ts"
import { isAlive, lifetimeParams } from "./Lifetime.ts"
import { nameCountOf } from "./NameCount.ts"
import { chainParams } from "./StoredChain.ts"
import { unissued } from "./Unissued.ts"

const stored = {
  id: uuid<OrderId>(),
  profile: name(),
  accountId: uuid<AccountId>(),
  status: text<OrderStatus>(),
  /** `[{"type":"dns","value":…},…]`, in the order of the request. */
  identifiers: identifiersColumn,
  notBefore: nullable(int),
  notAfter: nullable(int),
  error: nullable(problemColumn),
  createdAt: int,
  expiresAt: nullable(int),
  /** The kind of certificate. Absent for the kind `default`. */
  kind: nullable(name()),
  /** 1 if a worker that does not know kinds and scopes must not sign for the order. */
  restricted: nullable(int)
}

/** What every query of orders reads. */
export const orderColumns = { ...stored, replaces: nullable(text()) }

/**
 * Returns the list of a SELECT that reads {@link orderColumns} and more columns of orders `o`. The database moves
 * `replaces` of a failed order to `failed_replaces`, so that another order can replace the certificate.
 */
export const selectOrder = (more: Columns = {}): string =>
  `${select({ ...stored, ...more }, "o")}, coalesce(o.replaces, o.failed_replaces) AS "replaces"`

const hexToId = /(.{8})(.{4})(.{4})(.{4})(.{12})/

/** Ids in one JSON array. SQLite returns each id as hexadecimal digits. */
const idList: Column<ReadonlyArray<AuthorizationId>> = {
  encode: (value) => JSON.stringify(value),
  decode: (raw) =>
    (JSON.parse(String(raw)) as ReadonlyArray<string>).map((id) =>
      AuthorizationId(id.length === 32 ? id.replace(hexToId, "$1-$2-$3-$4-$5") : id)
    )
}

const orderWithAuthorizations = { ...orderColumns, authorizationIds: idList }

const byIdStatement = statement({
  name: "order_by_id",
  params: { id: orderColumns.id, profile: name(), accountId: orderColumns.accountId },
  row: orderWithAuthorizations,
  sql: ({ checked, dialect }) =>
    `SELECT ${selectOrder()}, (SELECT ${
      dialect === "postgres"
        ? "coalesce(json_agg(a.id ORDER BY a.id), '[]')::text"
        : "json_group_array(lower(hex(a.id)) ORDER BY a.id)"
    } FROM authorizations a WHERE a.order_id = o.id) AS "authorizationIds"
     FROM orders o WHERE o.id = :id AND ${checked("o.profile")} = :profile AND ${checked("o.account_id")} = :accountId`
})

const releaseReplaces = statement({
  name: "order_release_replaces",
  params: { profile: name(), replaces: text(), ...lifetimeParams },
  row: { id: orderColumns.id },
  sql: (f) =>
    `UPDATE orders SET status = ${reached(orderMoves.lapse)}
     WHERE profile = :profile AND replaces = :replaces AND ${leaving(orderMoves.lapse)} AND NOT ${isAlive(f)}
       AND status <> 'invalid'
     RETURNING id` // the last condition is repeated because the index has it on SQLite
})

/** Returns SQL for the number of valid authorizations of an order. */
export const validOf = (order: "orders" | "o") =>
  `(SELECT count(*) FROM authorizations a WHERE a.order_id = ${order}.id AND a.status = 'valid')`

// An order without names never counts as proved, because nothing could be certified.
const everyNameProved = `${nameCountOf("orders")} = NULLIF(${validOf("orders")}, 0)`

// An account that is blocked, or whose scope is lost, may order nothing.
const accountValid =
  `EXISTS (SELECT 1 FROM accounts c WHERE c.id = orders.account_id AND c.status = 'valid' AND c.scope_lost IS NULL
     AND c.blocked_at IS NULL)`

const promoteStatement = statement({
  name: "order_promote",
  params: { id: orderColumns.id },
  row: { id: orderColumns.id },
  sql: ({ checked }) =>
    `UPDATE orders SET status = ${reached(orderMoves.promote)}
     WHERE id = :id AND ${leaving(orderMoves.promote, checked("status"))} AND ${everyNameProved} RETURNING id`
})

const demoteStatement = statement({
  name: "order_demote",
  params: { id: orderColumns.id, error: nullable(problemColumn) },
  row: { id: orderColumns.id },
  sql: ({ checked }) =>
    `UPDATE orders SET status = ${reached(orderMoves.demote)}, error = :error
     WHERE id = :id AND ${leaving(orderMoves.demote, checked("status"))} RETURNING id`
})

const claimStatement = statement({
  name: "order_claim",
  params: {
    id: orderColumns.id,
    profile: name(),
    accountId: orderColumns.accountId,
    certPubkey: bytes,
    restricted: nullable(int),
    validityBound: nullable(int),
    ...lifetimeParams
  },
  row: { id: orderColumns.id },
  // The order need not be locked first: if an authorization is no longer valid when the certificate is stored, that
  // write changes nothing.
  sql: (f) =>
    `UPDATE orders SET status = ${reached(orderMoves.claim)}, restricted = :restricted, validity_bound = :validityBound
     WHERE id = :id AND ${f.checked("profile")} = :profile AND ${f.checked("account_id")} = :accountId AND ${isAlive(f)}
       AND ${leaving(orderMoves.claim, f.checked("status"))} AND ${everyNameProved} AND ${accountValid}
       AND ${unburnt(":certPubkey", f.dialect)}
     RETURNING id`
})

const failStatement = statement({
  name: "order_fail",
  params: { id: orderColumns.id, error: nullable(problemColumn) },
  row: { id: orderColumns.id },
  sql: ({ checked }) =>
    `UPDATE orders SET status = ${reached(orderMoves.fail)}, error = :error
     WHERE id = :id AND ${leaving(orderMoves.fail, checked("status"))} RETURNING id`
})

const failProcessing = statement({
  name: "order_fail_processing",
  params: { id: orderColumns.id, error: nullable(problemColumn) },
  row: { id: orderColumns.id },
  sql: ({ checked }) =>
    `UPDATE orders SET status = ${reached(orderMoves.fail)}, error = :error
     WHERE id = :id AND ${leaving(orderMoves.issue, checked("status"))} RETURNING id`
})

const forIssuance = {
  ...orderColumns,
  validityBound: nullable(int),
  accountStatus: text<AccountStatus>(),
  scopeLost: nullable(int),
  blockedAt: nullable(int),
  eabKid: nullable(uuidBytes),
  unproved: int
}

const forIssuanceStatement = statement({
  name: "order_for_issuance",
  params: { id: orderColumns.id, profile: name() },
  row: forIssuance,
  sql: ({ checked }) =>
    `SELECT ${selectOrder()}, o.validity_bound AS "validityBound", c.status AS "accountStatus", c.scope_lost AS "scopeLost",
       c.blocked_at AS "blockedAt", c.eab_kid AS "eabKid",
       ${nameCountOf("o")} - ${validOf("o")} AS "unproved"
     FROM orders o JOIN accounts c ON c.id = o.account_id
     WHERE o.id = :id AND ${checked("o.profile")} = :profile`
})

/** The parameters of {@link issuing}. */
export const certificateParams = {
  id: orderColumns.id,
  certificate: chainParams.certificate,
  leaf: chainParams.leaf,
  issuers: chainParams.issuers,
  certSerial: name(),
  certPubkey: bytes,
  certNotAfter: int,
  /** When the hour begins in which the certificate should be renewed, in epoch seconds. */
  renewsAt: nullable(int),
  /** The id of the CA of this service that signed the certificate. */
  issuer: nullable(name())
}

/**
 * Returns the statement that stores a certificate. It stores nothing if the account or an authorization is not valid,
 * if the account is blocked, if the key is burnt, or if the CA of this service that signed it is compromised.
 */
export const issuing = ({ checked, dialect }: Fragments): string =>
  `UPDATE orders SET status = ${
    reached(orderMoves.issue)
  }, certificate = :certificate, leaf = :leaf, issuers = :issuers,
     cert_serial = :certSerial, cert_pubkey = :certPubkey, cert_not_after = :certNotAfter, renews_at = :renewsAt
   WHERE id = :id AND ${leaving(orderMoves.issue, checked("status"))} AND ${everyNameProved}
     AND ${accountValid}
     AND ${unburnt(":certPubkey", dialect)}
     AND ${uncompromised(":issuer")}
   RETURNING id`

const notGrantedStatement = statement({
  name: "order_not_granted",
  params: { id: orderColumns.id, extensions: texts },
  row: {},
  sql: () => `UPDATE orders SET not_granted = :extensions WHERE id = :id`
})

const stuckProcessing = statement({
  name: "order_stuck_processing",
  params: { createdBefore: int, limit: int },
  row: {
    id: orderColumns.id,
    profile: orderColumns.profile,
    accountId: orderColumns.accountId,
    identifiers: orderColumns.identifiers
  },
  sql: (f) =>
    `SELECT o.id AS "id", o.profile AS "profile", o.account_id AS "accountId", o.identifiers AS "identifiers"
     FROM orders o WHERE o.status = 'processing'${unissued(f, "o.")} AND o.created_at < :createdBefore
       AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.status IN ('ready', 'running')
         AND j.kind IN (${signingKinds.map((kind) => `'${kind}'`).join(", ")}) AND j.dedup_key = ${f.idText("o.id")})
     ORDER BY o.id LIMIT :limit`
})

const profilesStatement = statement({
  name: "order_profiles",
  params: {},
  row: { profile: name() },
  sql: () => `SELECT profile FROM ${distinct("accounts", "profile")}`
})

type Owned = { readonly id: OrderId; readonly profile: string; readonly accountId: AccountId }

/** Finds an order of this account at this profile, with the ids of its authorizations. */
export const find = (owned: Owned) => first(byIdStatement, owned)

/** Ends expired, unfinished orders that claim to replace this certificate. */
export const releaseClaim = (profile: string, replaces: string, alive: Alive) =>
  run(releaseReplaces, { profile, replaces, ...alive })

/**
 * Locks an order. A transaction must take this lock before any write to the order, its authorizations or its
 * challenges.
 */
export const lock = (id: OrderId) => lockRow("orders", id)

/** Moves an order from `pending` to `ready` if all its authorizations are now valid. */
export const promote = (id: OrderId) => first(promoteStatement, { id })

/** Moves an order from `ready` back to `pending`, with an error that says why it cannot become ready again. */
export const demote = (id: OrderId, error: ProblemDocument) => first(demoteStatement, { id, error })

/**
 * Moves an order from `ready` to `processing`. The order must be unexpired and fully authorized, and the key to be
 * certified must not be burnt. Returns `undefined` otherwise.
 */
export const claim = (
  owned: Owned & Alive & {
    readonly certPubkey: Uint8Array
    readonly restricted: 1 | undefined
    readonly validityBound: number | undefined
  }
) => first(claimStatement, owned)

/** Moves an unfinished order to `invalid`. */
export const fail = (id: OrderId, error: ProblemDocument | undefined) => first(failStatement, { id, error })

/** Moves a `processing` order to `invalid`. */
export const failIssuance = (id: OrderId, error: ProblemDocument) => first(failProcessing, { id, error })

/**
 * Finds what the signing job checks: the order, the status of its account and its block, and how many of its
 * authorizations are not valid.
 */
export const findForIssuance = (profile: string, id: OrderId) => first(forIssuanceStatement, { profile, id })

/** Stores in an order which extensions the CSR requested but the certificate lacks. */
export const noteNotGranted = (id: OrderId, extensions: ReadonlyArray<string>) =>
  run(notGrantedStatement, { id, extensions })

/** Finds `processing` orders that have no live signing job and were created before an epoch second. */
export const findStuck = (createdBefore: number, limit: number) => lenient(stuckProcessing, { createdBefore, limit })

/** Returns every profile that has accounts, whether or not the profile is mounted. */
export const profiles = Effect.suspend(() => lenient(profilesStatement, {}))

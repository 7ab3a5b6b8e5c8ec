import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import { actorKinds, auditOutcomes } from "../../src/domain/Audit.ts"
import { hasFilterWord, orderFilterWords, orderStatuses } from "../../src/domain/Order.ts"
import * as accountSearch from "../../src/store/AccountSearch.ts"
import * as auditSearch from "../../src/store/AuditSearch.ts"
import * as orderSearch from "../../src/store/orders/OrderSearch.ts"
import { databases, useDatabase } from "../support/Databases.ts"
import { sql } from "../support/Graph.ts"

/*
 * A total is often counted by another statement than the statement that reads the list. The total must equal the length
 * of the list for all filters.
 */

const profiles = ["default", "other"]
const accountStatuses = ["valid", "deactivated", "revoked"] as const
const everything = { limit: 1000, offset: 0 }

describe.each(databases)("totals on $name", (backend) => {
  const database = useDatabase(backend)
  const { dialect } = backend

  let rows = 0
  const id = () => {
    const hex = (++rows).toString(16).padStart(32, "0")
    return dialect === "sqlite" ? `X'${hex}'` : `'${hex}'::uuid`
  }
  const octets = () => {
    const hex = (++rows).toString(16).padStart(8, "0")
    return dialect === "sqlite" ? `X'${hex}'` : `'\\x${hex}'`
  }

  it.effect("count orders by profile, status and time", () =>
    database.use(Effect.gen(function*() {
      for (const profile of profiles) {
        const account = id()
        yield* sql(
          `INSERT INTO accounts (id, profile, pubkey, status, created_at) VALUES (${account}, '${profile}', ${octets()}, 'valid', 0)`
        )
        for (const status of orderStatuses) {
          for (let at = 0; at < (status === "valid" ? 7 : 3); at++) {
            const [certificate, revokedAt] = status === "valid"
              ? ["'a chain'", at < 2 ? "1" : "NULL"]
              : ["NULL", "NULL"]
            yield* sql(
              `INSERT INTO orders (id, profile, account_id, status, identifiers, certificate, revoked_at, created_at)
               VALUES (${id()}, '${profile}', ${account}, '${status}', '[]', ${certificate}, ${revokedAt}, ${at})`
            )
          }
        }
      }
      for (const profile of [undefined, ...profiles]) {
        for (const status of [undefined, ...orderFilterWords]) {
          for (const span of [{}, { since: 1 }, { until: 2 }, { since: 1, until: 2 }]) {
            const filters = { profile, status, ...span }
            const found = yield* orderSearch.search(filters, everything)
            assert.isNotEmpty(found, JSON.stringify(filters))
            assert.isTrue(found.every((one) => status === undefined || hasFilterWord(status, one)), status)
            assert.strictEqual(yield* orderSearch.countMatches(filters), found.length, JSON.stringify(filters))
          }
        }
      }
    })))

  it.effect("count accounts by profile and status", () =>
    database.use(Effect.gen(function*() {
      for (const profile of profiles) {
        for (const [index, status] of accountStatuses.entries()) {
          for (let at = 0; at <= index; at++) {
            yield* sql(
              `INSERT INTO accounts (id, profile, pubkey, status, created_at)
               VALUES (${id()}, '${profile}', ${octets()}, '${status}', ${at})`
            )
          }
        }
      }
      for (const profile of [undefined, ...profiles]) {
        for (const status of [undefined, ...accountStatuses]) {
          const found = yield* accountSearch.search({ profile, status }, everything)
          assert.isNotEmpty(found)
          assert.strictEqual(yield* accountSearch.countMatches({ profile, status }), found.length)
        }
      }
    })))

  it.effect("count the audit trail by profile, outcome, actor and time", () =>
    database.use(Effect.gen(function*() {
      for (const profile of profiles) {
        for (const outcome of auditOutcomes) {
          for (const [index, actorKind] of actorKinds.entries()) {
            for (let at = 0; at <= index; at++) {
              yield* sql(
                `INSERT INTO audit_log (created_at, event, outcome, actor_kind, profile)
                 VALUES (${at}, 'job_advanced', '${outcome}', '${actorKind}', '${profile}')`
              )
            }
          }
        }
      }
      for (const profile of [undefined, ...profiles]) {
        for (const outcome of [undefined, ...auditOutcomes]) {
          for (const actorKind of [undefined, ...actorKinds]) {
            for (const until of [undefined, 1]) {
              const filters = { profile, outcome, actorKind, until }
              const found = yield* auditSearch.search(filters, everything)
              assert.isNotEmpty(found)
              assert.strictEqual(yield* auditSearch.countMatches(filters), found.length, JSON.stringify(filters))
            }
          }
        }
      }
    })))
})

import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { shown } from "../../../domain/JobFailure.ts"
import { SignerRefused } from "../../../domain/OperatorError.ts"
import { BadRequest } from "../../../domain/OperatorError.ts"
import { isAcceptedReason } from "../../../domain/RevocationReason.ts"
import { settledJob } from "../../../kernel/queue/Waits.ts"
import { currentSeconds } from "../../../kernel/Time.ts"
import { expiringFile, mostOverApi, ordersFile } from "../../../operations/Exports.ts"
import {
  expiringObject,
  jobObject,
  orderDetailObject,
  orderObject,
  upstreamOrderObject
} from "../../../operations/Objects.ts"
import { decodedChainObject } from "../../../operations/objects/CertificateObjects.ts"
import { orphanObject } from "../../../operations/objects/OrphanedCertificate.ts"
import { decodedChain } from "../../../operations/order/CertificateView.ts"
import * as expiring from "../../../operations/order/Expiring.ts"
import * as orders from "../../../operations/order/OrderRecords.ts"
import { remove } from "../../../operations/order/OrderRemoval.ts"
import * as orphans from "../../../operations/order/OrphanedCertificates.ts"
import { orderFilters, orphanFilters } from "../../../operations/RecordFilters.ts"
import * as upstreamOrders from "../../../operations/upstream/UpstreamOrders.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { Api } from "../Api.ts"
import { answering } from "../ApiRefusals.ts"
import { fileAnswer } from "./File.ts"
import { paged, windowOf } from "./Paging.ts"
import { operator } from "./RequestCaller.ts"

/** A request is answered this long before its deadline, even if the signer has not answered. */
const marginMillis = 1000

/** Orders and their certificates. */
export const ordersHandlers = (config: Config) => {
  const most = config.admin.page_size_max
  return HttpApiBuilder.group(Api, "orders", (handlers) =>
    handlers
      .handle("listOrders", ({ query }) => {
        const window = windowOf(query, most)
        return answering(Effect.gen(function*() {
          const found = yield* orders.list(yield* orderFilters(query), window)
          const now = yield* currentSeconds
          return {
            ...paged(found, (order) => orderObject(config, order, now), window),
            ...(found.truncated ? { truncated: true as const } : {})
          }
        }))
      })
      .handleRaw("exportOrders", ({ query: { format = "csv", ...given } }) =>
        answering(Effect.gen(function*() {
          const made = yield* ordersFile(config, yield* orderFilters(given), { format, most: mostOverApi })
          return yield* fileAnswer("orders", format, made)
        })))
      .handle("readOrder", ({ params: { id } }) =>
        answering(Effect.zipWith(orders.detail(config, id), currentSeconds, (found, now) =>
          orderDetailObject(config, found, now))))
      .handle("readCertificate", ({ params: { id } }) =>
        answering(Effect.map(decodedChain(config, id), decodedChainObject)))
      .handle("revokeOrder", ({ params: { id }, payload: { reason } }) =>
        answering(Effect.gen(function*() {
          if (reason != null && !isAcceptedReason(reason)) {
            return yield* new BadRequest({ detail: "The member reason takes 0 to 6 and 8 to 10." })
          }
          const { isRevoked, job } = yield* orders.revoke(config, yield* operator, id, reason ?? undefined)
          const revoked = Effect.zipWith(orders.find(id), currentSeconds, (order, now) => ({
            ...orderObject(config, order, now),
            ...(job === undefined ? {} : { job })
          }))
          if (isRevoked) {
            return yield* revoked
          }
          const ended = yield* settledJob(job, config.server.request_timeout_ms - marginMillis)
          if (ended?.status === "failed" || ended?.status === "cancelled") {
            return yield* new SignerRefused({
              detail: ended.lastError === undefined ? `Job ${job} is ${ended.status}.` : shown(ended.lastError)
            })
          }
          return ended?.status === "done" ? yield* revoked : { status: "queued" as const, job }
        })))
      .handle("deleteOrder", ({ params: { id } }) =>
        answering(Effect.flatMap(operator, (by) =>
          remove(by, id)))))
}

/** Certificates that expire soon. */
export const expiringHandlers = (config: Config) =>
  HttpApiBuilder.group(Api, "expiring", (handlers) =>
    handlers
      .handle("listExpiring", ({ query }) => {
        const window = windowOf(query, config.admin.page_size_max)
        return answering(Effect.gen(function*() {
          const wanted = expiring.wantedOf(config, query)
          const found = yield* expiring.list(wanted, window)
          const counts = { hidden: found.hidden, days: wanted.days, ...(found.truncated ? { truncated: true } : {}) }
          return { ...paged(found, expiringObject, window), ...counts }
        }))
      })
      .handleRaw("exportExpiring", ({ query: { format = "csv", ...given } }) =>
        answering(Effect.gen(function*() {
          const made = yield* expiringFile(expiring.wantedOf(config, given), { format, most: mostOverApi })
          return yield* fileAnswer("expiring", format, made)
        }))))

/** Certificates that a signer issued for orders that ended without them. */
export const orphanedCertificatesHandlers = (config: Config) =>
  HttpApiBuilder.group(
    Api,
    "orphanedCertificates",
    (handlers) =>
      handlers.handle("listOrphanedCertificates", ({ query: { profile, status, ...page } }) => {
        const window = windowOf(page, config.admin.page_size_max)
        return answering(Effect.gen(function*() {
          return paged(yield* orphans.list(yield* orphanFilters({ profile, status }), window), orphanObject, window)
        }))
      })
  )

/** Orders that were placed at an upstream CA. */
export const upstreamOrdersHandlers = (config: Config) =>
  HttpApiBuilder.group(Api, "upstreamOrders", (handlers) =>
    handlers
      .handle("listUpstreamOrders", ({ query: { profile, status, ...page } }) => {
        const window = windowOf(page, config.admin.page_size_max)
        return answering(Effect.gen(function*() {
          const found = yield* upstreamOrders.list({ profile, status }, window)
          const now = yield* currentSeconds
          return paged(found, (order) => upstreamOrderObject(config, order, now), window)
        }))
      })
      .handle("readUpstreamOrder", ({ params: { orderId } }) =>
        answering(Effect.zipWith(upstreamOrders.find(orderId), currentSeconds, ({ job, order }, now) => ({
          ...upstreamOrderObject(config, order, now),
          ...(job === undefined ? {} : { job: jobObject(job) })
        })))))

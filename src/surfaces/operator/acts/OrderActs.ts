import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { shown } from "../../../domain/JobFailure.ts"
import { SignerRefused } from "../../../domain/OperatorError.ts"
import { orderFilterWords } from "../../../domain/Order.ts"
import { JobId } from "../../../engine/queue/Job.ts"
import { settledJob } from "../../../engine/queue/Waits.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { decodedChain } from "../../../operations/operator/CertificateView.ts"
import { ordersFile } from "../../../operations/operator/Exports.ts"
import { formats } from "../../../operations/operator/ExportText.ts"
import { orderDetailObject, orderObject } from "../../../operations/operator/Objects.ts"
import { decodedChainObject } from "../../../operations/operator/objects/CertificateObjects.ts"
import * as orders from "../../../operations/operator/OrderRecords.ts"
import * as removal from "../../../operations/operator/OrderRemoval.ts"
import { renderOrder } from "../../cli/OrderText.ts"
import { act, FileOutput, noun } from "../Act.ts"
import { Acting, Configured, paged, periodFits } from "../Acting.ts"
import type { InputOf } from "../Field.ts"
import { key, ofProfile, optional, or, paging, period, word } from "../Field.ts"
import { Int, walkedPageOf } from "../schemas/Common.ts"
import { Chain, Order, OrderDetail, RevokedOrder } from "../schemas/OrderSchemas.ts"
import { byName, ofAccount, oneNameFits } from "./OrderFilters.ts"
import type { Begun } from "./Revoking.ts"
import { begin, begunText, Queued, reason, waitingFor } from "./Revoking.ts"

/* Declares the acts about orders and their certificates. */

const filters = {
  ...ofProfile,
  ...ofAccount,
  status: optional(
    word(
      orderFilterWords,
      "The status of the order. The word revoked finds orders whose certificate was revoked.",
      "The stored status of the order. The word revoked finds orders whose certificate was revoked."
    )
  ),
  ...byName("orders"),
  ...period
}

/** Refuses more than one filter for names, and a period that ends before it begins. */
const filtersFit = (given: InputOf<typeof filters>) => oneNameFits(given, periodFits(given))

/** Lists orders. */
export const listOrders = act({
  id: "listOrders",
  does: "List orders, newest first",
  access: "viewer",
  mayLag: true,
  input: { ...filters, ...paging },
  output: walkedPageOf(Order),
  errors: ["conflicting_identifier_filter"],
  fits: filtersFit,
  run: Effect.fnUntraced(function*({ limit, offset, ...filters }) {
    const config = yield* Configured.config
    yield* orders.checkKind(config, filters.kind)
    const now = yield* currentSeconds
    return yield* paged(
      { limit, offset },
      (window) => orders.list(filters, window),
      (order) => orderObject(config, order, now)
    )
  }),
  http: { route: "GET /api/orders" },
  cli: {
    command: "order list",
    example: "order list --identifier-suffix example.com",
    columns: ({ certNotAfter, createdAt, id, identifiers, kind, profile, revokedAt, status }) => ({
      id,
      profile,
      kind,
      status: revokedAt === undefined ? status : "revoked",
      created: createdAt,
      expires: certNotAfter ?? "",
      names: identifiers.map(({ value }) => value).join(" ")
    }),
    needsConfig: ({ kind }) => kind !== undefined,
    remark: ({ truncated }) => truncated === true ? "The search ended early; narrow it by account or time." : undefined
  }
})

/** Exports orders as a file. */
export const exportOrders = act({
  id: "exportOrders",
  does: "Export orders as a file, newest first",
  access: "viewer",
  mayLag: true,
  input: { ...filters, format: or(word(formats, "The format of the file."), "csv") },
  output: FileOutput,
  errors: ["conflicting_identifier_filter", "export_too_large"],
  fits: filtersFit,
  run: ({ format, ...filters }) =>
    Effect.gen(function*() {
      const config = yield* Configured.config
      yield* orders.checkKind(config, filters.kind)
      return yield* ordersFile(config, filters, { format, most: yield* Acting.mostExported })
    }),
  http: { route: "GET /api/orders/export" },
  cli: {
    command: "order export",
    help: "Write orders to standard output, newest first.",
    example: "order export --profile web --format json",
    needsConfig: () => true
  }
})

const ofOrder = { id: key("The id of the order.", { help: "The order's id." }) }

/** Shows an order. */
const readOrder = act({
  id: "readOrder",
  does: "Show an order, with its authorizations and jobs",
  access: "viewer",
  mayLag: true,
  input: ofOrder,
  output: OrderDetail,
  errors: [],
  run: ({ id }) =>
    Effect.gen(function*() {
      const config = yield* Configured.config
      return orderDetailObject(config, yield* orders.detail(config, id), yield* currentSeconds)
    }),
  http: { route: "GET /api/orders/{id}" },
  cli: {
    command: "order show",
    help: "Show an order, its authorizations and jobs, and why it failed.",
    example: "order show ID",
    text: renderOrder
  }
})

const readCertificate = act({
  id: "readCertificate",
  does: "Show the certificate chain of an order, decoded",
  access: "viewer",
  mayLag: true,
  input: ofOrder,
  output: Chain,
  errors: [],
  run: ({ id }) =>
    Effect.gen(function*() {
      return decodedChainObject(yield* decodedChain(yield* Configured.config, id))
    }),
  http: { route: "GET /api/orders/{id}/certificate" }
})

/** A request is answered this many milliseconds before its deadline, even if the signer has not answered yet. */
const marginMillis = 1000

const begunOf = ({ job, status }: { readonly job: string; readonly status: string }): Begun => ({
  isRevoked: status !== "queued",
  job: JobId(job)
})

/** Revokes the certificate of an order. */
export const revokeOrder = act({
  id: "revokeOrder",
  does: "Revoke the certificate of an order; 202 while an external signer has not answered yet",
  access: "operator",
  input: { ...ofOrder, reason },
  output: Schema.Union([RevokedOrder, Queued]),
  errors: [
    "profile_not_mounted",
    "order_not_issued",
    "already_revoked",
    "issuer_unknown",
    "issuer_stopped",
    "signer_failed"
  ],
  run: ({ id, reason }) =>
    Effect.gen(function*() {
      const { isRevoked, job } = yield* begin(id, reason)
      const config = yield* Configured.config
      const revoked = Effect.zipWith(orders.find(id), currentSeconds, (order, now) => ({
        ...orderObject(config, order, now),
        job
      }))
      if (isRevoked) return yield* revoked
      const { surface } = yield* Acting.operator
      // In the panel a page shows the job, and a command waits for the job itself.
      const ended = surface === "api"
        ? yield* settledJob(job, config.server.request_timeout_ms - marginMillis)
        : undefined
      if (ended?.status === "failed" || ended?.status === "cancelled") {
        return yield* new SignerRefused({
          detail: ended.lastError === undefined ? `Job ${job} is ${ended.status}.` : shown(ended.lastError)
        })
      }
      return ended?.status === "done" ? yield* revoked : { status: "queued" as const, job }
    }),
  http: { route: "POST /api/orders/{id}/revoke" },
  cli: {
    command: "order revoke",
    help: "Revoke the certificate of an order.",
    example: "order revoke ID --reason superseded --wait 10",
    text: (output) => begunText(begunOf(output)),
    also: waitingFor((output: Parameters<typeof begunOf>[0]) => [begunOf(output)])
  }
})

/** Deletes an order. */
export const deleteOrder = act({
  id: "deleteOrder",
  does: "Delete an order, unless its certificate can still be used",
  access: "operator",
  input: ofOrder,
  output: Schema.Struct({ deleted: Schema.Struct({ authorizations: Int }) }),
  errors: ["live_certificates"],
  run: ({ id }) => Effect.flatMap(Acting.operator, (operator) => removal.remove(operator, id)),
  http: { route: "DELETE /api/orders/{id}" },
  cli: {
    command: "order delete",
    example: "order delete ID --yes",
    confirm: ({ id }) =>
      Effect.map(
        removal.preview(id),
        ({ authorizations, profile, status }) =>
          `Delete the ${status} order ${id} of profile ${profile} and its ${authorizations} authorization(s)?`
      ),
    text: ({ deleted }) => `Deleted the order with ${deleted.authorizations} authorization(s).`
  }
})

/** The acts about orders and their certificates. */
export const orderActs = noun({
  name: "orders",
  description: "Orders and their certificates.",
  commands: { order: "Orders and their certificates." },
  acts: [listOrders, exportOrders, readOrder, readCertificate, revokeOrder, deleteOrder]
})

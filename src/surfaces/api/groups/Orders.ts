import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { reachedBy } from "../Access.ts"
import { refusals } from "../Refusals.ts"
import { Id, pageOf, walkedPageOf } from "../schemas/Common.ts"
import { exportOf } from "../schemas/Export.ts"
import {
  Chain,
  Expiring,
  Order,
  OrderDetail,
  OrderStatus,
  UpstreamOrder,
  UpstreamOrderDetail,
  UpstreamStatus
} from "../schemas/Orders.ts"
import { byId, exported, ofProfile, paging, period, segment, text, whole, word } from "../schemas/Parameters.ts"

/* Orders and their certificates. */

const order = byId("order")

const orderFilters = {
  ...ofProfile,
  accountId: text("The id of the account."),
  status: word(OrderStatus.literals, "The status of the order."),
  identifier: text("The whole name."),
  identifierSuffix: text("The last labels of the name."),
  identifierContains: text("A part of the name, three characters or more."),
  certSerial: text("The serial number of the certificate, hexadecimal."),
  ...period
}
const expiringFilters = {
  ...ofProfile,
  days: whole(
    "How many days ahead certificates are looked for. The default is notify.expiry.lead_days, or 30 where that is 0.",
    { minimum: 1 }
  ),
  superseded: word(["show", "hide"], "hide leaves out certificates that were replaced.", "show")
}

/** `/api/orders` */
export const orders = HttpApiGroup.make("orders").add(
  HttpApiEndpoint.get("listOrders", "/api/orders")
    .setUrlParams(Schema.Struct({ ...orderFilters, ...paging }))
    .addSuccess(walkedPageOf(Order))
    .addError(refusals("conflicting_identifier_filter"))
    .annotate(OpenApi.Summary, "Orders, newest first")
    .pipe(reachedBy("viewer"))
)
  .add(
    HttpApiEndpoint.get("exportOrders", "/api/orders/export")
      .setUrlParams(Schema.Struct({ ...orderFilters, ...exported }))
      .addSuccess(exportOf)
      .addError(refusals("conflicting_identifier_filter", "export_too_large"))
      .annotate(OpenApi.Summary, "Export orders as a file")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.get("readOrder", "/api/orders/:id")
      .setPath(order)
      .addSuccess(OrderDetail)
      .annotate(OpenApi.Summary, "Show an order, with its authorizations and jobs")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.get("readCertificate", "/api/orders/:id/certificate")
      .setPath(order)
      .addSuccess(Chain)
      .annotate(OpenApi.Summary, "Show the certificate chain of an order, decoded")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.post("revokeOrder", "/api/orders/:id/revoke")
      .setPath(order)
      .setPayload(Schema.Struct({
        reason: Schema.optional(Schema.Int.annotations({ description: "RFC 5280 code, 0 to 6 and 8 to 10." }))
      }))
      .addSuccess(Schema.Struct({ status: Schema.Literal("revoked"), job: Schema.optional(Id) }))
      .addSuccess(Schema.Struct({ status: Schema.Literal("queued"), job: Id }), { status: 202 })
      .addError(
        refusals("profile_not_mounted", "order_not_issued", "already_revoked", "issuer_unknown", "signer_failed")
      )
      .annotate(
        OpenApi.Summary,
        "Revoke the certificate of an order; 202 while an external signer has not answered yet"
      )
      .pipe(reachedBy("operator"))
  )
  .add(
    HttpApiEndpoint.del("deleteOrder", "/api/orders/:id")
      .setPath(order)
      .addSuccess(Schema.Struct({ deleted: Schema.Struct({ authorizations: Schema.Int }) }))
      .addError(refusals("live_certificates"))
      .annotate(OpenApi.Summary, "Delete an order")
      .pipe(reachedBy("operator"))
  ).annotate(OpenApi.Description, "Orders and their certificates.")

/** `/api/expiring` */
export const expiring = HttpApiGroup.make("expiring").add(
  HttpApiEndpoint.get("listExpiring", "/api/expiring")
    .setUrlParams(Schema.Struct({ ...expiringFilters, ...paging }))
    .addSuccess(Schema.Struct({
      ...pageOf(Expiring).fields,
      hidden: Schema.Int.annotations({ description: "How many were left out because they were replaced." }),
      days: Schema.Int,
      truncated: Schema.optional(
        Schema.Boolean.annotations({ description: "Counting ended early. There may be more than hidden." })
      )
    }))
    .annotate(OpenApi.Summary, "List certificates that expire soon, soonest first")
    .pipe(reachedBy("viewer"))
)
  .add(
    HttpApiEndpoint.get("exportExpiring", "/api/expiring/export")
      .setUrlParams(Schema.Struct({ ...expiringFilters, ...exported }))
      .addSuccess(exportOf)
      .addError(refusals("export_too_large"))
      .annotate(OpenApi.Summary, "Export certificates that expire soon as a file")
      .pipe(reachedBy("viewer"))
  ).annotate(OpenApi.Description, "Certificates that expire soon.")

/** `/api/upstream-orders` */
export const upstreamOrders = HttpApiGroup.make("upstreamOrders").add(
  HttpApiEndpoint.get("listUpstreamOrders", "/api/upstream-orders")
    .setUrlParams(Schema.Struct({
      ...ofProfile,
      status: word(UpstreamStatus.literals, "The status of the order at the upstream."),
      ...paging
    }))
    .addSuccess(pageOf(UpstreamOrder))
    .annotate(OpenApi.Summary, "Relayed orders, newest first")
    .pipe(reachedBy("viewer"))
)
  .add(
    HttpApiEndpoint.get("readUpstreamOrder", "/api/upstream-orders/:orderId")
      .setPath(Schema.Struct({ orderId: segment("The id of the local order.") }))
      .addSuccess(UpstreamOrderDetail)
      .annotate(OpenApi.Summary, "Show a relayed order, by the id of the local order")
      .pipe(reachedBy("viewer"))
  ).annotate(OpenApi.Description, "Orders that were placed at an upstream CA.")

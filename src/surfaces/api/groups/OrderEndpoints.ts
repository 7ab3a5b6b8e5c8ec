import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { orderFilterWords } from "../../../domain/Order.ts"
import { reachedBy } from "../../operator/ReachedBy.ts"
import { refusals } from "../../operator/RefusalSchemas.ts"
import { Id, Int, intOf, optionalMember, pageOf, walkedPageOf } from "../../operator/schemas/Common.ts"
import { exportOf } from "../../operator/schemas/ExportSchema.ts"
import {
  Chain,
  Expiring,
  Order,
  OrderDetail,
  OrphanedCertificate,
  RevokedOrder,
  UpstreamOrder,
  UpstreamOrderDetail,
  UpstreamStatus
} from "../../operator/schemas/OrderSchemas.ts"
import {
  byId,
  exported,
  ofProfile,
  paging,
  period,
  segment,
  text,
  whole,
  word
} from "../../operator/schemas/Parameters.ts"

/* Orders and their certificates. */

const order = byId("order")

const orderFilters = {
  ...ofProfile,
  accountId: text("The id of the account."),
  status: word(orderFilterWords, "The status of the order; revoked are those whose certificate was revoked."),
  identifier: text("The whole name."),
  identifierSuffix: text("The last labels of the name."),
  identifierContains: text("A part of the name."),
  certSerial: text("The serial number of the certificate, hexadecimal."),
  ...period
}
const expiringFilters = {
  ...ofProfile,
  days: whole(
    "How many days ahead certificates are looked for. A value below 1 counts as 1, one above 100000 as that. The default is notify.expiry.lead_days, or 30 where that is 0."
  ),
  superseded: word(["show", "hide"], "hide leaves out certificates that were replaced.", "show")
}

/** `/api/orders` */
export const orders = HttpApiGroup.make("orders").add(
  HttpApiEndpoint.get("listOrders", "/api/orders", {
    query: { ...orderFilters, ...paging },
    success: walkedPageOf(Order),
    error: refusals("conflicting_identifier_filter")
  })
    .annotate(OpenApi.Summary, "Orders, newest first")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.get("exportOrders", "/api/orders/export", {
    query: { ...orderFilters, ...exported },
    success: exportOf,
    error: refusals("conflicting_identifier_filter", "export_too_large")
  })
    .annotate(OpenApi.Summary, "Export orders as a file")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.get("readOrder", "/api/orders/:id", { params: order, success: OrderDetail })
    .annotate(OpenApi.Summary, "Show an order, with its authorizations and jobs")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.get("readCertificate", "/api/orders/:id/certificate", { params: order, success: Chain })
    .annotate(OpenApi.Summary, "Show the certificate chain of an order, decoded")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.post("revokeOrder", "/api/orders/:id/revoke", {
    params: order,
    payload: Schema.Struct({
      reason: optionalMember(intOf("RFC 5280 code, 0 to 6 and 8 to 10."))
    }),
    success: [
      RevokedOrder,
      Schema.Struct({ status: Schema.Literal("queued"), job: Id }).pipe(HttpApiSchema.status(202))
    ],
    error: refusals(
      "profile_not_mounted",
      "order_not_issued",
      "already_revoked",
      "issuer_unknown",
      "issuer_stopped",
      "signer_failed"
    )
  })
    .annotate(
      OpenApi.Summary,
      "Revoke the certificate of an order; 202 while an external signer has not answered yet"
    )
    .annotateMerge(reachedBy("operator")),
  HttpApiEndpoint.delete("deleteOrder", "/api/orders/:id", {
    params: order,
    success: Schema.Struct({ deleted: Schema.Struct({ authorizations: Int }) }),
    error: refusals("live_certificates")
  })
    .annotate(OpenApi.Summary, "Delete an order")
    .annotateMerge(reachedBy("operator"))
).annotate(OpenApi.Description, "Orders and their certificates.")

/** `/api/expiring` */
export const expiring = HttpApiGroup.make("expiring").add(
  HttpApiEndpoint.get("listExpiring", "/api/expiring", {
    query: { ...expiringFilters, ...paging },
    success: Schema.Struct({
      ...pageOf(Expiring).fields,
      hidden: intOf("How many were left out because they were replaced."),
      days: Int,
      truncated: Schema.optionalKey(
        Schema.Boolean.annotate({ description: "Counting ended early. There may be more than hidden." })
      )
    })
  })
    .annotate(OpenApi.Summary, "List certificates that expire soon, soonest first")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.get("exportExpiring", "/api/expiring/export", {
    query: { ...expiringFilters, ...exported },
    success: exportOf,
    error: refusals("export_too_large")
  })
    .annotate(OpenApi.Summary, "Export certificates that expire soon as a file")
    .annotateMerge(reachedBy("viewer"))
).annotate(OpenApi.Description, "Certificates that expire soon.")

/** `/api/orphaned-certificates` */
export const orphanedCertificates = HttpApiGroup.make("orphanedCertificates").add(
  HttpApiEndpoint.get("listOrphanedCertificates", "/api/orphaned-certificates", {
    query: {
      ...ofProfile,
      status: word(
        OrphanedCertificate.fields.status.literals,
        "What became of the certificate: it waits for its revocation, was revoked, could not be, belongs to an order, or expired."
      ),
      ...paging
    },
    success: pageOf(OrphanedCertificate)
  })
    .annotate(OpenApi.Summary, "Certificates whose order ended without them, newest first")
    .annotateMerge(reachedBy("viewer"))
).annotate(OpenApi.Description, "Certificates that a signer issued for orders that ended without them.")

/** `/api/upstream-orders` */
export const upstreamOrders = HttpApiGroup.make("upstreamOrders").add(
  HttpApiEndpoint.get("listUpstreamOrders", "/api/upstream-orders", {
    query: {
      ...ofProfile,
      status: word(UpstreamStatus.literals, "The status of the order at the upstream."),
      ...paging
    },
    success: pageOf(UpstreamOrder)
  })
    .annotate(OpenApi.Summary, "Relayed orders, newest first")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.get("readUpstreamOrder", "/api/upstream-orders/:orderId", {
    params: { orderId: segment("The id of the local order.") },
    success: UpstreamOrderDetail
  })
    .annotate(OpenApi.Summary, "Show a relayed order, by the id of the local order")
    .annotateMerge(reachedBy("viewer"))
).annotate(OpenApi.Description, "Orders that were placed at an upstream CA.")

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { reachedBy } from "../../operator/ReachedBy.ts"
import { refusals } from "../../operator/RefusalSchemas.ts"
import { Account, AccountDetail, AccountStatus } from "../../operator/schemas/AccountSchemas.ts"
import { Int, optionalMember, pageOf } from "../../operator/schemas/Common.ts"
import { exportOf } from "../../operator/schemas/ExportSchema.ts"
import { Order } from "../../operator/schemas/OrderSchemas.ts"
import { byId, exported, ofProfile, paging, text, word } from "../../operator/schemas/Parameters.ts"

/* Accounts of ACME clients, and the credentials that bind them. */

const account = byId("account")
const accountFilters = {
  ...ofProfile,
  status: word(AccountStatus.literals, "The status of the account."),
  eabKid: text("The key identifier of the credential that bound the account.")
}

/** `/api/accounts` */
export const accounts = HttpApiGroup.make("accounts").add(
  HttpApiEndpoint.get("listAccounts", "/api/accounts", {
    query: { ...accountFilters, ...paging },
    success: pageOf(Account)
  })
    .annotate(OpenApi.Summary, "Accounts, newest first")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.get("exportAccounts", "/api/accounts/export", {
    query: { ...accountFilters, ...exported },
    success: exportOf,
    error: refusals("export_too_large")
  })
    .annotate(OpenApi.Summary, "Export accounts as a file")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.get("readAccount", "/api/accounts/:id", { params: account, success: AccountDetail })
    .annotate(OpenApi.Summary, "One account")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.get("listOrdersOf", "/api/accounts/:id/orders", {
    params: account,
    query: paging,
    success: pageOf(Order)
  })
    .annotate(OpenApi.Summary, "List the orders of an account, newest first")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.patch("updateAccount", "/api/accounts/:id", {
    params: account,
    payload: Schema.Struct({ contact: optionalMember(Schema.Array(Schema.String)) }),
    success: AccountDetail
  })
    .annotate(OpenApi.Summary, "Replace the contacts of an account; an empty list or null clears them")
    .annotateMerge(reachedBy("operator")),
  HttpApiEndpoint.post("deactivateAccount", "/api/accounts/:id/deactivate", { params: account, success: AccountDetail })
    .annotate(OpenApi.Summary, "Deactivate an account for good")
    .annotateMerge(reachedBy("operator")),
  HttpApiEndpoint.delete("deleteAccount", "/api/accounts/:id", {
    params: account,
    success: Schema.Struct({ deleted: Schema.Struct({ orders: Int, authorizations: Int }) }),
    error: refusals("live_certificates")
  })
    .annotate(OpenApi.Summary, "Delete an account and its orders")
    .annotateMerge(reachedBy("operator"))
).annotate(OpenApi.Description, "Accounts of ACME clients.")

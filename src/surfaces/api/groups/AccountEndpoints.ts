import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { refusals } from "../ApiRefusals.ts"
import { reachedBy } from "../ReachedBy.ts"
import {
  Account,
  AccountDetail,
  AccountStatus,
  Credential,
  CredentialStatus,
  MintedCredential
} from "../schemas/AccountSchemas.ts"
import { Int, optionalMember, pageOf } from "../schemas/Common.ts"
import { exportOf } from "../schemas/ExportSchema.ts"
import { Order } from "../schemas/OrderSchemas.ts"
import { byId, exported, ofProfile, paging, segment, text, word } from "../schemas/Parameters.ts"

/* Accounts of ACME clients, and the credentials that bind them. */

const account = byId("account")
const byKid = { kid: segment("The key identifier of the credential.") }

const accountFilters = {
  ...ofProfile,
  status: word(AccountStatus.literals, "The status of the account."),
  eabKid: text("The key identifier of the credential that bound the account.")
}
const credentialFilters = { status: word(CredentialStatus.literals, "The status of the credential.") }

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

/** `/api/eab` */
export const eab = HttpApiGroup.make("eab").add(
  HttpApiEndpoint.get("listCredentials", "/api/eab", {
    query: { ...credentialFilters, ...paging },
    success: pageOf(Credential)
  })
    .annotate(OpenApi.Summary, "List credentials, newest first, without their secrets")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.get("exportCredentials", "/api/eab/export", {
    query: { ...credentialFilters, ...exported },
    success: exportOf,
    error: refusals("export_too_large")
  })
    .annotate(OpenApi.Summary, "Export credentials as a file, without their secrets")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.post("createCredential", "/api/eab", {
    payload: Schema.Struct({
      label: Schema.String,
      profile: optionalMember(Schema.String.annotate({ description: "The only profile that accepts it." }))
    }),
    success: MintedCredential
  })
    .annotate(OpenApi.Summary, "Create a credential; its secret is shown once")
    .annotateMerge(reachedBy("operator")),
  HttpApiEndpoint.get("readCredential", "/api/eab/:kid", { params: byKid, success: Credential })
    .annotate(OpenApi.Summary, "Show a credential, without its secret")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.post("revokeCredential", "/api/eab/:kid/revoke", { params: byKid, success: HttpApiSchema.NoContent })
    .annotate(OpenApi.Summary, "Revoke a credential; its accounts remain")
    .annotateMerge(reachedBy("operator")),
  HttpApiEndpoint.delete("deleteCredential", "/api/eab/:kid", {
    params: byKid,
    query: {
      accounts: word(
        ["keep", "deactivate", "delete"],
        "What happens to the accounts that it has bound.",
        "keep"
      )
    },
    success: Schema.Struct({
      deleted: Schema.Struct({ accounts: Int, orders: Int }),
      deactivatedAccounts: Int,
      keptAccounts: Int
    }),
    error: refusals("live_certificates")
  })
    .annotate(OpenApi.Summary, "Delete a credential")
    .annotateMerge(reachedBy("operator"))
).annotate(OpenApi.Description, "Credentials of external account binding.")

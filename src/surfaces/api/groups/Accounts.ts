import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { reachedBy } from "../Access.ts"
import { refusals } from "../Refusals.ts"
import {
  Account,
  AccountDetail,
  AccountStatus,
  Credential,
  CredentialStatus,
  MintedCredential
} from "../schemas/Accounts.ts"
import { pageOf } from "../schemas/Common.ts"
import { exportOf } from "../schemas/Export.ts"
import { Order } from "../schemas/Orders.ts"
import { byId, exported, ofProfile, paging, segment, text, word } from "../schemas/Parameters.ts"

/* Accounts of ACME clients, and the credentials that bind them. */

const account = byId("account")
const byKid = Schema.Struct({ kid: segment("The key identifier of the credential.") })

const accountFilters = {
  ...ofProfile,
  status: word(AccountStatus.literals, "The status of the account."),
  eabKid: text("The key identifier of the credential that bound the account.")
}
const credentialFilters = { status: word(CredentialStatus.literals, "The status of the credential.") }

/** `/api/accounts` */
export const accounts = HttpApiGroup.make("accounts").add(
  HttpApiEndpoint.get("listAccounts", "/api/accounts")
    .setUrlParams(Schema.Struct({ ...accountFilters, ...paging }))
    .addSuccess(pageOf(Account))
    .annotate(OpenApi.Summary, "Accounts, newest first")
    .pipe(reachedBy("viewer"))
)
  .add(
    HttpApiEndpoint.get("exportAccounts", "/api/accounts/export")
      .setUrlParams(Schema.Struct({ ...accountFilters, ...exported }))
      .addSuccess(exportOf)
      .addError(refusals("export_too_large"))
      .annotate(OpenApi.Summary, "Export accounts as a file")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.get("readAccount", "/api/accounts/:id")
      .setPath(account)
      .addSuccess(AccountDetail)
      .annotate(OpenApi.Summary, "One account")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.get("listOrdersOf", "/api/accounts/:id/orders")
      .setPath(account)
      .setUrlParams(Schema.Struct(paging))
      .addSuccess(pageOf(Order))
      .annotate(OpenApi.Summary, "List the orders of an account, newest first")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.patch("updateAccount", "/api/accounts/:id")
      .setPath(account)
      .setPayload(Schema.Struct({ contact: Schema.Array(Schema.String) }))
      .addSuccess(AccountDetail)
      .annotate(OpenApi.Summary, "Replace the contacts of an account; an empty list clears them")
      .pipe(reachedBy("operator"))
  )
  .add(
    HttpApiEndpoint.post("deactivateAccount", "/api/accounts/:id/deactivate")
      .setPath(account)
      .addSuccess(AccountDetail)
      .annotate(OpenApi.Summary, "Deactivate an account for good")
      .pipe(reachedBy("operator"))
  )
  .add(
    HttpApiEndpoint.del("deleteAccount", "/api/accounts/:id")
      .setPath(account)
      .addSuccess(Schema.Struct({ deleted: Schema.Struct({ orders: Schema.Int, authorizations: Schema.Int }) }))
      .addError(refusals("live_certificates"))
      .annotate(OpenApi.Summary, "Delete an account and its orders")
      .pipe(reachedBy("operator"))
  ).annotate(OpenApi.Description, "Accounts of ACME clients.")

/** `/api/eab` */
export const eab = HttpApiGroup.make("eab").add(
  HttpApiEndpoint.get("listCredentials", "/api/eab")
    .setUrlParams(Schema.Struct({ ...credentialFilters, ...paging }))
    .addSuccess(pageOf(Credential))
    .annotate(OpenApi.Summary, "List credentials, newest first, without their secrets")
    .pipe(reachedBy("viewer"))
)
  .add(
    HttpApiEndpoint.get("exportCredentials", "/api/eab/export")
      .setUrlParams(Schema.Struct({ ...credentialFilters, ...exported }))
      .addSuccess(exportOf)
      .addError(refusals("export_too_large"))
      .annotate(OpenApi.Summary, "Export credentials as a file, without their secrets")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.post("createCredential", "/api/eab")
      .setPayload(Schema.Struct({
        label: Schema.String,
        profile: Schema.optional(Schema.String.annotations({ description: "The only profile that accepts it." }))
      }))
      .addSuccess(MintedCredential)
      .annotate(OpenApi.Summary, "Create a credential; its secret is shown once")
      .pipe(reachedBy("operator"))
  )
  .add(
    HttpApiEndpoint.get("readCredential", "/api/eab/:kid")
      .setPath(byKid)
      .addSuccess(Credential)
      .annotate(OpenApi.Summary, "Show a credential, without its secret")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.post("revokeCredential", "/api/eab/:kid/revoke")
      .setPath(byKid)
      .addSuccess(HttpApiSchema.NoContent)
      .annotate(OpenApi.Summary, "Revoke a credential; its accounts remain")
      .pipe(reachedBy("operator"))
  )
  .add(
    HttpApiEndpoint.del("deleteCredential", "/api/eab/:kid")
      .setPath(byKid)
      .setUrlParams(Schema.Struct({
        accounts: word(
          ["keep", "deactivate", "delete"],
          "What happens to the accounts that it has bound.",
          "keep"
        )
      }))
      .addSuccess(Schema.Struct({
        deleted: Schema.Struct({ accounts: Schema.Int, orders: Schema.Int }),
        deactivatedAccounts: Schema.Int,
        keptAccounts: Schema.Int
      }))
      .addError(refusals("live_certificates"))
      .annotate(OpenApi.Summary, "Delete a credential")
      .pipe(reachedBy("operator"))
  ).annotate(OpenApi.Description, "Credentials of external account binding.")

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { reachedBy } from "../../operator/ReachedBy.ts"
import { Members, pageOf } from "../../operator/schemas/Common.ts"
import { ofProfile, segment, word } from "../../operator/schemas/Parameters.ts"
import { Found, Policy, Profile, Range, Setting, Trends } from "../../operator/schemas/ServiceSchemas.ts"

/* The state and the records of the service itself. */

/** `/api/profiles`, `/api/config`, `/api/search`, `/api/trends` and the document of this API. */
export const service = HttpApiGroup.make("service").add(
  HttpApiEndpoint.get("listProfiles", "/api/profiles", { success: pageOf(Profile) })
    .annotate(OpenApi.Summary, "Mounted endpoints")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.get("readPolicy", "/api/profiles/:name/filter", {
    params: { name: segment("The name of the profile.") },
    success: Policy
  })
    .annotate(OpenApi.Summary, "Show the policy of an endpoint")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.get("readConfig", "/api/config", {
    query: ofProfile,
    success: Schema.Struct({ items: Schema.Array(Setting) })
  })
    .annotate(OpenApi.Summary, "Show the configuration in force; secrets are masked")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.get("search", "/api/search", {
    query: { q: Schema.String.annotate({ description: "An id, a serial number or a name." }) },
    success: Found
  })
    .annotate(OpenApi.Summary, "Find a record by its id, its serial number or a name")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.get("readTrends", "/api/trends", {
    query: { ...ofProfile, range: word(Range.literals, "How far back.", "24h") },
    success: Trends
  })
    .annotate(OpenApi.Summary, "Count issuances, refusals and revocations over time")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.get("readOpenApi", "/api/openapi.json", { success: Members })
    .annotate(OpenApi.Summary, "This document")
    .annotateMerge(reachedBy("viewer"))
).annotate(OpenApi.Description, "The configuration and the activity of the service.")

/** `/health` */
export const health = HttpApiGroup.make("health").add(
  HttpApiEndpoint.get("readHealth", "/health", { success: Schema.Struct({ healthy: Schema.Literal(true) }) })
    .annotate(OpenApi.Summary, "Say whether this process serves")
    .annotateMerge(reachedBy("public"))
).annotate(OpenApi.Description, "Health of this process, for load balancers.")

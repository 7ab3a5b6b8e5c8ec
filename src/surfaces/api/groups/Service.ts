import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { reachedBy } from "../Access.ts"
import { refusals } from "../Refusals.ts"
import { Members, pageOf, walkedPageOf } from "../schemas/Common.ts"
import { exportOf } from "../schemas/Export.ts"
import { Job, JobDetail, JobStatus } from "../schemas/Orders.ts"
import { byId, exported, ofProfile, paging, period, segment, text, word } from "../schemas/Parameters.ts"
import {
  ActorKind,
  AuditRow,
  Ca,
  Found,
  Nonces,
  Outcome,
  Policy,
  Profile,
  Queue,
  Range,
  Setting,
  Trends,
  Worker
} from "../schemas/Service.ts"

/* The state and the records of the service itself. */

const auditFilters = {
  ...ofProfile,
  accountId: text("The id of the account."),
  orderId: text("The id of the order."),
  certSerial: text("The serial number of the certificate, hexadecimal."),
  requestId: text("The id of the request, as the log and the answer have it."),
  event: text("The name of the event."),
  outcome: word(Outcome.literals, "Whether the event was a success."),
  actorKind: word(ActorKind.literals, "Who acted."),
  ...period
}

/** `/api/audit` */
export const audit = HttpApiGroup.make("audit").add(
  HttpApiEndpoint.get("listAudit", "/api/audit")
    .setUrlParams(Schema.Struct({ ...auditFilters, ...paging }))
    .addSuccess(walkedPageOf(AuditRow))
    .annotate(OpenApi.Summary, "List the audit trail, newest first")
    .pipe(reachedBy("viewer"))
)
  .add(
    HttpApiEndpoint.get("exportAudit", "/api/audit/export")
      .setUrlParams(Schema.Struct({ ...auditFilters, ...exported }))
      .addSuccess(exportOf)
      .addError(refusals("export_too_large"))
      .annotate(OpenApi.Summary, "Export the audit trail as a file")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.get("readAuditRow", "/api/audit/:id")
      .setPath(byId("row"))
      .addSuccess(AuditRow)
      .annotate(OpenApi.Summary, "Show a row of the audit trail")
      .pipe(reachedBy("viewer"))
  ).annotate(OpenApi.Description, "Actions and refusals. Rows are never changed.")

/** `/api/jobs`, `/api/queue` and `/api/workers` */
export const jobs = HttpApiGroup.make("jobs").add(
  HttpApiEndpoint.get("listJobs", "/api/jobs")
    .setUrlParams(Schema.Struct({
      kind: text("The kind of the job. No job is of a kind that is unknown."),
      status: word(JobStatus.literals, "The status of the job."),
      orderId: text("The id of the order that the job is about."),
      ...paging
    }))
    .addSuccess(pageOf(Job))
    .annotate(OpenApi.Summary, "Jobs, newest first")
    .pipe(reachedBy("viewer"))
)
  .add(
    HttpApiEndpoint.get("readJob", "/api/jobs/:id")
      .setPath(byId("job"))
      .addSuccess(JobDetail)
      .annotate(OpenApi.Summary, "One job")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.post("cancelJob", "/api/jobs/:id/cancel")
      .setPath(byId("job"))
      .addSuccess(JobDetail)
      .addError(refusals("job_not_cancellable"))
      .annotate(OpenApi.Summary, "Cancel a job; an order that waits for it becomes invalid")
      .pipe(reachedBy("operator"))
  )
  .add(
    HttpApiEndpoint.post("runJob", "/api/jobs/:id/run")
      .setPath(byId("job"))
      .addSuccess(JobDetail)
      .addError(refusals("job_not_runnable"))
      .annotate(OpenApi.Summary, "Run a job now; a failed job gets one more attempt")
      .pipe(reachedBy("operator"))
  )
  .add(
    HttpApiEndpoint.get("readQueue", "/api/queue")
      .addSuccess(Queue)
      .annotate(OpenApi.Summary, "Count the jobs of each kind")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.get("listWorkers", "/api/workers")
      .addSuccess(Schema.Struct({ items: Schema.Array(Worker) }))
      .annotate(OpenApi.Summary, "List the processes of this service")
      .pipe(reachedBy("viewer"))
  ).annotate(OpenApi.Description, "Jobs, and the processes that run them.")

/** `/api/nonces` */
export const nonces = HttpApiGroup.make("nonces").add(
  HttpApiEndpoint.get("readNonces", "/api/nonces")
    .addSuccess(Nonces)
    .annotate(OpenApi.Summary, "Count the stored nonces")
    .pipe(reachedBy("viewer"))
)
  .add(
    HttpApiEndpoint.post("cleanNonces", "/api/nonces/cleanup")
      .setPayload(Schema.Struct({
        ttlSeconds: Schema.optional(
          Schema.Int.annotations({ description: "Delete nonces older than this. The default is nonce.ttl_seconds." })
        )
      }))
      .addSuccess(Schema.Struct({ removed: Schema.Int }))
      .annotate(OpenApi.Summary, "Delete expired nonces")
      .pipe(reachedBy("operator"))
  ).annotate(OpenApi.Description, "Replay nonces.")

/** `/api/profiles`, `/api/cas`, `/api/config`, `/api/search`, `/api/trends` and the document of this API. */
export const service = HttpApiGroup.make("service").add(
  HttpApiEndpoint.get("listProfiles", "/api/profiles")
    .addSuccess(pageOf(Profile))
    .annotate(OpenApi.Summary, "Mounted endpoints")
    .pipe(reachedBy("viewer"))
)
  .add(
    HttpApiEndpoint.get("readPolicy", "/api/profiles/:name/filter")
      .setPath(Schema.Struct({ name: segment("The name of the profile.") }))
      .addSuccess(Policy)
      .annotate(OpenApi.Summary, "Show the policy of an endpoint")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.get("listCas", "/api/cas")
      .addSuccess(Schema.Struct({ items: Schema.Array(Ca) }))
      .annotate(OpenApi.Summary, "List the CAs of this service and their revocation lists")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.get("readConfig", "/api/config")
      .setUrlParams(Schema.Struct(ofProfile))
      .addSuccess(Schema.Struct({ items: Schema.Array(Setting) }))
      .annotate(OpenApi.Summary, "Show the configuration in force; secrets are masked")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.get("search", "/api/search")
      .setUrlParams(
        Schema.Struct({ q: Schema.String.annotations({ description: "An id, a serial number or a name." }) })
      )
      .addSuccess(Found)
      .annotate(OpenApi.Summary, "Find a record by its id, its serial number or a name")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.get("readTrends", "/api/trends")
      .setUrlParams(Schema.Struct({ ...ofProfile, range: word(Range.literals, "How far back.", "24h") }))
      .addSuccess(Trends)
      .annotate(OpenApi.Summary, "Count issuances, refusals and revocations over time")
      .pipe(reachedBy("viewer"))
  )
  .add(
    HttpApiEndpoint.get("readOpenApi", "/api/openapi.json")
      .addSuccess(Members)
      .annotate(OpenApi.Summary, "This document")
      .pipe(reachedBy("viewer"))
  ).annotate(OpenApi.Description, "The configuration, the CAs and the activity of the service.")

/** `/health` */
export const health = HttpApiGroup.make("health").add(
  HttpApiEndpoint.get("readHealth", "/health")
    .addSuccess(Schema.Struct({ healthy: Schema.Literal(true) }))
    .annotate(OpenApi.Summary, "Say whether this process serves")
    .pipe(reachedBy("public"))
).annotate(OpenApi.Description, "Health of this process, for load balancers.")

import * as Schema from "effect/Schema"
import { kind, makeJobs } from "../../engine/queue/Kind.ts"
import { computing, waiting } from "../../engine/queue/Slots.ts"

/*
 * The kinds of jobs, and what the queue must know about each kind.
 *
 * A payload names the subject of the job and contains the facts of the request, but no secret
 * (docs/contribute/decisions/job-outcomes.md, "Payloads"). Workers of the previous and the next version also read
 * payloads, so a new member must be optional (docs/contribute/decisions/compatibility.md, "Neighbours").
 */

const Client = Schema.Struct({
  ip: Schema.optional(Schema.String),
  ptr: Schema.optional(Schema.String),
  user_agent: Schema.optional(Schema.String),
  request_id: Schema.optional(Schema.String)
})

/** The client's address, agent and request id. They are stored for work that is done after the request. */
export type ClientFacts = typeof Client.Type

const ofProfile = Schema.Struct({ profile: Schema.String })

const issuance = Schema.Struct({
  order_id: Schema.String,
  profile: Schema.String,
  /** The CSR as base64url DER. */
  csr: Schema.String,
  client: Client
})

const relayedIssuance = Schema.Struct({ order_id: Schema.String, profile: Schema.String })
const relayRoom = waiting({ factor: 4, memberPart: 1 / 4 })
const ofCampaign = Schema.Struct({ campaign_id: Schema.String })
const ofAll = Schema.Struct({})

/** Every kind of job. */
export const kinds = {
  challenge_validate: kind({
    payload: Schema.Struct({
      challenge_id: Schema.String,
      profile: Schema.String,
      thumbprint: Schema.String,
      client_ip: Schema.optional(Schema.String),
      request_id: Schema.optional(Schema.String)
    }),
    room: waiting({ factor: 16, memberPart: 1 / 4 })
  }),
  signer_issue: kind({ payload: issuance, room: computing }),
  signer_relay_issue: kind({ payload: relayedIssuance, room: relayRoom }),
  // Jobs for orders that a kind of certificate or a credential restricts. A worker of a version that does not know such
  // restrictions would ignore them. But it does not run jobs of a kind that it does not know.
  signer_issue_restricted: kind({ payload: issuance, room: computing }),
  signer_relay_issue_restricted: kind({ payload: relayedIssuance, room: relayRoom }),
  signer_revoke: kind({
    payload: Schema.Struct({
      order_id: Schema.String,
      profile: Schema.String,
      /** The reason code of RFC 5280. */
      reason: Schema.optional(Schema.Int),
      actor: Schema.Struct({ kind: Schema.Literals(["acme", "admin", "cli"]), id: Schema.optional(Schema.String) }),
      client: Client
    }),
    room: computing
  }),
  orphan_revoke: kind({
    payload: Schema.Struct({
      order_id: Schema.String,
      profile: Schema.String,
      /** The order at the upstream, if it may have a certificate: its URL, and the CSR as base64url DER. */
      upstream: Schema.optional(Schema.Struct({ order_url: Schema.String, csr: Schema.String }))
    }),
    room: computing
  }),
  key_revoke: kind({
    payload: Schema.Struct({
      /** The key as base64url DER SubjectPublicKeyInfo. */
      pubkey: Schema.String,
      client: Client
    }),
    // Clients choose how many keys they report.
    room: computing
  }),
  notify_deliver: kind({
    payload: Schema.Struct({
      /** The name of a profile, or the scope of operators. */
      scope: Schema.String,
      backend: Schema.Literals(["email", "webhook", "custom"]),
      entry: Schema.String,
      event: Schema.String,
      /** The members of the event, in the form in which they are delivered. */
      fields: Schema.StructWithRest(
        Schema.Struct(
          { hook: Schema.String, profile: Schema.String, at: Schema.Int, delivery_id: Schema.String }
        ),
        [Schema.Record(Schema.String, Schema.Unknown)]
      ),
      /** The only recipients of a mail, because the others have it. */
      to: Schema.optional(Schema.Array(Schema.String))
    }),
    // Each member of such a share is a receiver, and each part of it an account that events are about. There are few
    // receivers, so one receiver may take a larger part than one account.
    room: waiting({ factor: 2, memberPart: 1 / 2 })
  }),
  notify_expiry_digest: kind({ payload: ofProfile, periodic: true }),
  notify_expiry_reminders: kind({ payload: ofProfile, periodic: true }),
  authority_expiry: kind({ payload: ofAll, periodic: true }),
  upstream_renewals: kind({ payload: ofAll, periodic: true }),
  local_ca_crl_regenerate: kind({
    payload: Schema.Struct({
      issuer: Schema.String,
      /**
       * A list that the database does not know was served. This is its number, and the new list needs a higher number.
       */
      above: Schema.optional(Schema.Int)
    })
  }),
  local_ca_crl_sweep: kind({ payload: ofAll, periodic: true }),
  http01_token_sweep: kind({ payload: ofAll, periodic: true }),
  nonce_sweep: kind({ payload: ofAll, periodic: true }),
  admin_session_sweep: kind({ payload: ofAll, periodic: true }),
  order_sweep: kind({ payload: ofAll, periodic: true }),
  audit_sweep: kind({ payload: ofAll, periodic: true }),
  audit_chain: kind({ payload: ofAll, periodic: true }),
  audit_chain_check: kind({ payload: ofAll, periodic: true }),
  /** The name of a receiver of the audit trail. */
  audit_push: kind({ payload: Schema.Struct({ receiver: Schema.String }), periodic: true }),
  campaign_fill: kind({ payload: ofCampaign }),
  campaign_revoke: kind({ payload: ofCampaign }),
  campaign_round: kind({ payload: ofAll, periodic: true }),
  job_retention_sweep: kind({ payload: ofAll, periodic: true })
}

const jobs = makeJobs(kinds, { groupName: "profile" })

/** A kind of job that this build knows. */
export type JobKind = keyof typeof kinds

/** The payload of a job of this kind. */
export type PayloadOf<K extends JobKind> = (typeof kinds)[K]["payload"]["Type"]

/** The names of the kinds. */
export const jobKinds = jobs.names

/** The kinds of jobs that sign for an order. The key of such a job is the id of the order. */
export const signingKinds = [
  "signer_issue",
  "signer_issue_restricted",
  "signer_relay_issue",
  "signer_relay_issue_restricted"
] as const satisfies ReadonlyArray<JobKind>

/** The kinds, in the form that the queue needs. */
export const knownKinds = jobs.known

/** Reads a stored payload. Returns `undefined` if the payload does not have the shape of its kind. */
export const decodePayload = jobs.decodePayload

/**
 * Writes a job in the caller's transaction. Returns its id. If a live job with the same kind and key exists, returns
 * the id of that job instead.
 */
export const enqueueJob = jobs.enqueue

/** Turns a handler into a row of the table that the runner uses. */
export const handler = jobs.handler

/**
 * Cancels a job if it still has the status that the caller read. Returns `undefined` if the status has changed, or if a
 * job with this status cannot be cancelled.
 */
export const cancelJob = jobs.cancel

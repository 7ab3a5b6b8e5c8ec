import * as Brand from "effect/Brand"
import * as Schema from "effect/Schema"

/** A job's id: a lower-case hyphenated UUID, like the id of every record. */
export type JobId = string & Brand.Brand<"JobId">
export const JobId = Brand.nominal<JobId>()

/*
 * A payload names the subject, carries what the request knew, and holds no secret (docs/decisions/job-outcomes.md,
 * "Payloads"). Workers of the version before and after read it too: a new member is optional
 * (docs/decisions/compatibility.md, "Neighbours").
 */

const Client = Schema.Struct({
  ip: Schema.optional(Schema.String),
  ptr: Schema.optional(Schema.String),
  user_agent: Schema.optional(Schema.String),
  request_id: Schema.optional(Schema.String)
})

/** The client's address, agent and request id that led to work done later. */
export type ClientFacts = typeof Client.Type

/** Every kind and the shape of its payload. */
export const payloads = {
  challenge_validate: Schema.Struct({
    challenge_id: Schema.String,
    profile: Schema.String,
    thumbprint: Schema.String,
    client_ip: Schema.optional(Schema.String),
    request_id: Schema.optional(Schema.String)
  }),
  signer_issue: Schema.Struct({
    order_id: Schema.String,
    profile: Schema.String,
    /** base64url DER */
    csr: Schema.String,
    client: Client
  }),
  signer_relay_issue: Schema.Struct({ order_id: Schema.String, profile: Schema.String }),
  signer_revoke: Schema.Struct({
    order_id: Schema.String,
    profile: Schema.String,
    /** RFC 5280 code */
    reason: Schema.optional(Schema.Int),
    actor: Schema.Struct({ kind: Schema.Literals(["acme", "admin", "cli"]), id: Schema.optional(Schema.String) }),
    client: Client
  }),
  orphan_revoke: Schema.Struct({
    order_id: Schema.String,
    profile: Schema.String,
    /** The order at the upstream, if it may have a certificate: its URL, and the CSR as base64url DER. */
    upstream: Schema.optional(Schema.Struct({ order_url: Schema.String, csr: Schema.String }))
  }),
  key_revoke: Schema.Struct({
    /** base64url DER SubjectPublicKeyInfo */
    pubkey: Schema.String,
    client: Client
  }),
  notify_deliver: Schema.Struct({
    /** A profile, or the scope of operators. */
    scope: Schema.String,
    backend: Schema.Literals(["email", "webhook", "custom"]),
    entry: Schema.String,
    event: Schema.String,
    /** The members of the event, as they are delivered. */
    fields: Schema.StructWithRest(
      Schema.Struct(
        { hook: Schema.String, profile: Schema.String, at: Schema.Int, delivery_id: Schema.String }
      ),
      [Schema.Record(Schema.String, Schema.Unknown)]
    )
  }),
  notify_expiry_digest: Schema.Struct({ profile: Schema.String }),
  notify_expiry_reminders: Schema.Struct({ profile: Schema.String }),
  authority_expiry: Schema.Struct({}),
  upstream_renewals: Schema.Struct({}),
  local_ca_crl_regenerate: Schema.Struct({ issuer: Schema.String }),
  local_ca_crl_sweep: Schema.Struct({}),
  http01_token_sweep: Schema.Struct({}),
  nonce_sweep: Schema.Struct({}),
  admin_session_sweep: Schema.Struct({}),
  order_sweep: Schema.Struct({}),
  audit_sweep: Schema.Struct({}),
  job_retention_sweep: Schema.Struct({})
} as const

export type JobKind = keyof typeof payloads

/** Every kind this build knows. */
export const jobKinds = Object.keys(payloads) as ReadonlyArray<JobKind>

export type PayloadOf<K extends JobKind> = (typeof payloads)[K]["Type"]

export type JobStatus = "ready" | "running" | "done" | "failed" | "cancelled"

/** A claimed row. Times are epoch seconds. */
export interface Job {
  readonly id: JobId
  readonly kind: JobKind
  readonly dedupKey: string
  readonly payload: string
  readonly attempts: number
  readonly maxAttempts: number
  readonly deadline: number | undefined
  readonly createdAt: number
  /**
   * The owner in whose share it counts, among jobs of its kind: its profile and its account, if it has them ({@link
   * shareOf}).
   */
  readonly share: string
  /**
   * The time that attempts have taken and the waits that they asked for, without the time in which no process held the
   * job.
   */
  readonly spentSeconds: number
  /** The columns of the row that cannot be read, and why; the job has stand-ins in their place. */
  readonly unreadable?: string
}

/** The share of a job. Claims are fair between profiles, and between the accounts of each profile. */
export const shareOf = (profile: string, accountId: string): string => `${profile}/${accountId}`

/** The profile of a share. */
export const profileOf = (share: string): string => share.slice(0, Math.max(share.indexOf("/"), 0))

/** The key of periodic kinds, which have one live row. */
export const periodicKey = "all"

/**
 * Kinds that wait for others, such as a name server or an upstream, and do not compute: their slots for each slot of a
 * kind that computes, and the part of an account (`Room`). A receiver of notifications counts as an account. There are
 * few of them, so each may have more.
 */
const waiting: { readonly [K in JobKind]?: { readonly factor: number; readonly accountPart: number } } = {
  challenge_validate: { factor: 16, accountPart: 1 / 4 },
  signer_relay_issue: { factor: 4, accountPart: 1 / 4 },
  notify_deliver: { factor: 2, accountPart: 1 / 2 }
}

/** How many jobs of a kind one process may have at once. */
export interface Room {
  readonly slots: number
  /** Slots that are given in order of arrival. Beyond them, the share that has least comes first. */
  readonly firstCome: number
  /** The most for one profile. */
  readonly profile: number
  /**
   * A part of what the account's profile has left. An account that has fewer slots than this part may take another;
   * every account may have one.
   */
  readonly accountPart: number
}

/**
 * The room of a kind, by `jobs.max_concurrent`. A kind that computes has that many slots. A kind that waits has many
 * more slots of its own, so that it never delays kinds that compute. The more of these are taken, the fewer an account
 * may have, so that some are left for newcomers. Other kinds have one row per subject and no limit (`undefined`): all
 * their rows may run.
 */
export const roomOf = (kind: JobKind, most: number): Room | undefined => {
  const waits = waiting[kind]
  if (waits !== undefined) {
    const { accountPart, factor } = waits
    const slots = factor * most
    // Whole numbers: the first is the limit of a statement.
    return { slots, firstCome: Math.ceil(slots / 4), profile: Math.floor(slots * 3 / 4), accountPart }
  }
  if (kind !== "signer_issue" && kind !== "signer_revoke" && kind !== "orphan_revoke") return undefined
  // One slot is left for other profiles, because a signer may be a slow program.
  const others = most < 4 ? 0 : 1
  return { slots: most, firstCome: most - others, profile: most - others, accountPart: Number.POSITIVE_INFINITY }
}

/** `jobs.retry_*` in seconds. */
export interface BackoffPolicy {
  readonly retry_base_seconds: number
  readonly retry_max_seconds: number
}

// 2^30 seconds is beyond any ceiling; clamping the exponent keeps the product finite.
const maxExponent = 30

/**
 * Seconds until the next attempt after `attempts` attempts (from 1). They double each time up to the ceiling; a random
 * part of up to a quarter is subtracted. `random` is uniform in [0, 1).
 */
export const backoffSeconds = (attempts: number, policy: BackoffPolicy, random: number): number => {
  const exponent = Math.min(Math.max(attempts - 1, 0), maxExponent)
  const full = Math.min(policy.retry_max_seconds, policy.retry_base_seconds * 2 ** exponent)
  return Math.max(1, Math.round(full - full * 0.25 * random))
}

import * as Effect from "effect/Effect"
import { Entropy } from "../../crypto/Entropy.ts"
import { defaultKind } from "../../domain/CertificateKind.ts"
import type {
  ExpiringCertificate,
  MessageKind,
  NotificationBackend,
  NotificationFields,
  Scope
} from "../../domain/Notification.ts"
import { contactEvent, onlyEntry, payloadOf } from "../../domain/Notification.ts"
import { BadRequest } from "../../domain/OperatorError.ts"
import { emit } from "../../domain/words/Log.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { Deliveries } from "../../services/notify/Deliveries.ts"
import { hasReminders, isOfScope, routesOf, sectionsOf } from "../../services/notify/NotifyRoutes.ts"
import type { Config } from "../../settings/AppConfig.ts"
import * as audit from "../../store/AuditRows.ts"
import type { Operator } from "../Operator.ts"
import { actorFields, actorOf } from "../Operator.ts"

/* Sends sample notifications to receivers, so that an operator sees the messages that arrive. */

/** Which deliveries are tried: all configured deliveries, unless one is named. */
export interface Trial {
  /** A backend, or the name of a webhook or a program. */
  readonly target: string | undefined
  readonly event: MessageKind | undefined
  readonly profile: string | undefined
}

/** The result of one sample at one receiver. */
export interface Tried {
  readonly profile: Scope
  readonly backend: NotificationBackend
  readonly entry: string
  readonly event: MessageKind
  readonly delivered: boolean
  readonly answer: string
}

const atOnce = 4
const zero = "00000000-0000-7000-8000-000000000000"
const sample = { order_id: zero, account_id: zero, client_ip: "192.0.2.1" }
const names = ["test.example", "www.test.example"]
const serial = "00c0ffee"
const daySeconds = 86_400
const ninetyDays = 90 * daySeconds
const operator = { username: "test", client_ip: "192.0.2.1" }

/** Returns two certificates: one that was not replaced, and one that was replaced. */
const expiringAt = (now: number): ReadonlyArray<ExpiringCertificate> => {
  const one = { order_id: zero, account_id: zero, cert_serial: serial, identifiers: names, kind: defaultKind }
  const [end, later] = [now + 3 * daySeconds, now + ninetyDays]
  return [
    { ...one, not_after: end, days_remaining: 3 },
    {
      ...one,
      not_after: end,
      days_remaining: 3,
      superseded_by: { order_id: zero, cert_serial: serial, not_after: later, via: "identifiers" }
    }
  ]
}

const samplesAt = (now: number): NotificationFields => ({
  profile_mounted: {},
  account_created: { account_id: zero, client_ip: sample.client_ip, contact: ["mailto:test@example.org"] },
  account_deactivated: { account_id: zero, client_ip: sample.client_ip },
  account_blocked: { account_id: zero, client_ip: sample.client_ip, block_reason: "a test" },
  account_unblocked: { account_id: zero, client_ip: sample.client_ip },
  certificate_issued: {
    ...sample,
    cert_serial: serial,
    identifiers: names,
    kind: defaultKind,
    not_after: now + ninetyDays
  },
  certificate_revoked: { ...sample, cert_serial: serial, identifiers: names, reason: 4 },
  challenge_failed: {
    ...sample,
    authz_id: zero,
    challenge_id: zero,
    challenge_type: "http-01",
    identifier: "test.example",
    error: "connection"
  },
  certificates_expiring: { generated_at: now, lead_days: 14, total: 2, superseded: 1, certificates: expiringAt(now) },
  authority_expiring: {
    issuer: "00".repeat(32),
    subject: "CN=Test CA",
    chain_ends_with: "CN=Test CA",
    not_after: now + 7 * daySeconds,
    days_remaining: 7
  },
  campaign_finished: {
    campaign_id: zero,
    campaign_reason: "a test",
    matched: 3,
    replaced: 2,
    revoked: 0,
    expired: 1
  },
  expiry_reminder: { account_id: zero, total: 1, certificates: expiringAt(now).slice(0, 1) },
  admin_sign_in: { ...operator, outcome: "succeeded_from_new_address", user_agent: "test" },
  admin_credential_changed: { ...operator, change: "password", by_self: true }
})

interface Target {
  readonly scope: Scope
  readonly backend: NotificationBackend
  readonly entry: string
  readonly event: MessageKind
}

/**
 * Returns the mails to contacts of accounts. The samples are sent to the recipients of the section, and not to any
 * contact.
 */
const remindersOf = (config: Config, { event, profile, target }: Trial) =>
  config.profiles
    .filter(({ enabled, name, notify }) =>
      enabled && hasReminders(notify) && (profile === undefined || profile === name)
    )
    .filter(() => (target === undefined || target === "email") && (event === undefined || event === contactEvent))
    .map(({ name }): Target => ({ scope: name, backend: "email", entry: onlyEntry, event: contactEvent }))

const targetsOf = (config: Config, { event, profile, target }: Trial): ReadonlyArray<Target> =>
  [...sectionsOf(config)].filter(([scope]) => profile === undefined || profile === scope).flatMap(([scope, section]) =>
    routesOf(section)
      .filter(({ backend, entry }) => target === undefined || target === backend || target === entry)
      // A sample mail about operators has no recipient of its own, so the section must name one.
      .filter(({ backend }) => backend !== "email" || section.email.to.length > 0)
      .flatMap(({ backend, entry, events }) =>
        [...events].filter((one) => isOfScope(one, scope) && (event === undefined || event === one)).map((one) => ({
          scope,
          backend,
          entry,
          event: one
        }))
      )
  )

/**
 * Sends a sample of each event to each selected receiver that wants the event, and returns the answers of the
 * receivers. Samples that were sent are recorded in the audit trail, even if the caller no longer waits for the result.
 */
export const test = Effect.fn("NotificationTrial.test")(function*(config: Config, by: Operator, trial: Trial) {
  const targets = [...targetsOf(config, trial), ...remindersOf(config, trial)]
  if (targets.length === 0) {
    return yield* new BadRequest({ detail: "The configuration has no receiver that fits and wants the event." })
  }
  const { deliver } = yield* Deliveries
  const { uuid } = yield* Entropy
  const now = yield* currentSeconds
  const samples = samplesAt(now)
  const ended: Array<Tried> = []
  let begun = 0
  const told = Effect.suspend(() => {
    const failed = ended.filter(({ delivered }) => !delivered).length
    const detail = {
      ...(trial.target === undefined ? {} : { target: trial.target }),
      delivered: ended.length - failed,
      failed,
      ...(begun > ended.length ? { unanswered: begun - ended.length } : {})
    }
    const row = audit.record({
      event: "notifications_tested",
      ...actorOf(by),
      ...(trial.profile === undefined ? {} : { profile: trial.profile }),
      detail
    })
    return Effect.andThen(row, emit("notify_tested", { ...actorFields(by), count: begun, failed }))
  })
  const tried: ReadonlyArray<Tried> = yield* Effect.forEach(
    targets,
    ({ backend, entry, event, scope }) =>
      Effect.gen(function*() {
        const fields = { ...payloadOf({ event, scope, fields: samples[event] }, now, yield* uuid), test: true }
        const about = { profile: scope, backend, entry, event }
        begun++
        const one = yield* Effect.match(deliver({ scope, backend, entry, fields }), {
          onSuccess: ({ answer }): Tried => ({ ...about, delivered: true, answer }),
          onFailure: (failure): Tried => ({
            ...about,
            delivered: false,
            answer: failure._tag === "DeliveryRefused" ? failure.detail : "is not configured"
          })
        })
        ended.push(one)
        return one
      }),
    { concurrency: atOnce }
  ).pipe(Effect.onInterrupt(() => Effect.ignore(told)))
  yield* told
  return tried
})

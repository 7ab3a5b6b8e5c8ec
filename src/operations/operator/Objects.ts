import * as Array from "effect/Array"
import type * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { statusShown as authorizationShown } from "../../domain/Authorization.ts"
import { kindName } from "../../domain/CertificateKind.ts"
import { scopeIn, statedScope } from "../../domain/CredentialScope.ts"
import { baseName, DnsName, isWildcard } from "../../domain/Identifier.ts"
import { shown as failureShown } from "../../domain/JobFailure.ts"
import { operatorScope } from "../../domain/Notification.ts"
import type { OrderStatus } from "../../domain/Order.ts"
import { expiryOf, statusShown } from "../../domain/Order.ts"
import { member, timeMember } from "../../engine/Members.ts"
import type { JobRecord } from "../../engine/queue/JobRecords.ts"
import type * as workers from "../../engine/queue/Workers.ts"
import { rfc3339 } from "../../engine/Time.ts"
import type { Config } from "../../settings/AppConfig.ts"
import type { Credential } from "../../store/eab/EabKeys.ts"
import type { ChallengeRecord } from "../../store/orders/OrderDetail.ts"
import type { ListedOrder } from "../../store/orders/OrderSearch.ts"
import type { UpstreamOrderRecord } from "../../store/upstream/UpstreamOrderRecords.ts"
import type { Expiring } from "../Expiring.ts"
import type { ListedCertificate } from "./CertificateRecords.ts"
import type { CrlView } from "./CrlRecords.ts"
import { withoutAddresses } from "./JobErrorText.ts"
import type { JobDetail } from "./Jobs.ts"
import type { detail } from "./OrderRecords.ts"
import { validityOf } from "./OrderRecords.ts"

/**
 * Records as operators see them: `--json` of the command line prints these objects
 * (docs/contribute/decisions/command-line.md, "What every command keeps to").
 */

/** An EAB credential, without its secret. */
export const credentialObject = (credential: Credential) => {
  const { accounts, createdAt, externalKid, kid, label, profile, status } = credential
  const { expiresAt, ...scope } = statedScope(scopeIn(credential))
  return {
    kid,
    ...member("externalKid", externalKid),
    ...member("label", label),
    ...member("profile", profile),
    status,
    createdAt: rfc3339(createdAt),
    accounts,
    ...scope,
    ...timeMember("expiresAt", expiresAt)
  }
}

/** An order, without its PEM. */
export const orderObject = (config: Config, order: ListedOrder, now: number) => {
  const validity = validityOf(config, order.profile)
  return {
    id: order.id,
    profile: order.profile,
    accountId: order.accountId,
    status: statusShown(order, validity, now),
    identifiers: order.identifiers,
    kind: kindName(order.kind),
    createdAt: rfc3339(order.createdAt),
    expires: rfc3339(expiryOf(order, validity)),
    url: `${config.server.base_url}/profile/${order.profile}/order/${order.id}`,
    ...timeMember("notBefore", order.notBefore),
    ...timeMember("notAfter", order.notAfter),
    ...member("error", order.error),
    ...member("replaces", order.replaces),
    ...member("certSerial", order.certSerial),
    ...timeMember("certNotAfter", order.certNotAfter),
    ...timeMember("revokedAt", order.revokedAt),
    ...member("revocationReason", order.revocationReason),
    ...member("createdIp", order.createdIp),
    ...member("createdPtr", order.createdPtr)
  }
}

/** A certificate as the list of certificates shows it. */
export const certificateObject = ({ accountLabel, order, replacedBy, state }: ListedCertificate) => ({
  orderId: order.id,
  identifiers: order.identifiers.map(({ value }) => value),
  kind: kindName(order.kind),
  state,
  ...timeMember("notAfter", order.certNotAfter),
  profile: order.profile,
  accountId: order.accountId,
  ...member("accountLabel", accountLabel),
  ...member("certSerial", order.certSerial),
  orderedAt: rfc3339(order.createdAt),
  ...timeMember("revokedAt", order.revokedAt),
  ...member("revocationReason", order.revocationReason),
  ...member("replacedBy", replacedBy)
})

/** A certificate that expires soon, and the certificate that replaces it, if there is one. */
export const expiringObject = ({ daysRemaining, notAfter, order, supersededBy }: Expiring) => ({
  orderId: order.id,
  profile: order.profile,
  accountId: order.accountId,
  ...member("certSerial", order.certSerial),
  identifiers: order.identifiers.map(({ value }) => value),
  kind: kindName(order.kind),
  notAfter: rfc3339(notAfter),
  daysRemaining,
  ...member(
    "supersededBy",
    supersededBy === undefined ? undefined : {
      orderId: supersededBy.order.id,
      ...member("certSerial", supersededBy.order.certSerial),
      ...timeMember("notAfter", supersededBy.order.certNotAfter),
      via: supersededBy.via
    }
  )
})

// The decoder is made once, because making it for each row took most of the time of a page of jobs.
const readPayload = Schema.decodeOption(
  Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))
)

/**
 * Returns the parts of a payload that may be shown. The CSR is never shown. A payload that cannot be read is not shown
 * either. A notification about an operator contains the operator's address and the place of the sign-in. Viewers of
 * jobs must not see these.
 */
const payloadShown = (payload: string): { readonly [member: string]: unknown } => {
  const read = readPayload(payload)
  const { csr: _, ...shown } = Option.getOrElse(read, () => ({}) as { readonly [member: string]: unknown })
  if (shown["scope"] !== operatorScope) return shown
  const { fields: __, ...others } = shown
  return others
}

/**
 * Returns why an attempt failed. If a mail server refuses an operator's address, its answer repeats the address, so
 * that part is not shown.
 */
const lastErrorShown = (job: JobRecord): string | undefined => {
  if (job.lastError === undefined) return undefined
  const text = failureShown(job.lastError)
  return payloadShown(job.payload)["scope"] === operatorScope ? withoutAddresses(text) : text
}

/** A row of the queue. */
export const jobObject = (job: JobRecord) => ({
  id: job.id,
  kind: job.kind,
  dedupKey: job.dedupKey,
  payload: payloadShown(job.payload),
  status: job.status,
  runAt: rfc3339(job.runAt),
  attempts: job.attempts,
  maxAttempts: job.maxAttempts,
  ...timeMember("deadline", job.deadline),
  ...timeMember("leaseUntil", job.leaseUntil),
  ...member("leaseOwner", job.leaseOwner),
  ...member("lastError", lastErrorShown(job)),
  createdAt: rfc3339(job.createdAt),
  updatedAt: rfc3339(job.updatedAt)
})

/** A relayed order: its state at the upstream and its state here. Text from the upstream is not changed. */
export const upstreamOrderObject = (config: Config, order: UpstreamOrderRecord, now: number) => {
  const { localCreatedAt: createdAt, localExpiresAt: expiresAt, localStatus: status, profile } = order
  const validity = validityOf(config, profile)
  return {
    orderId: order.orderId,
    profile,
    accountId: order.accountId,
    identifiers: order.identifiers,
    status: order.status,
    localStatus: statusShown({ status, createdAt, expiresAt }, validity, now),
    localExpires: rfc3339(expiryOf({ createdAt, expiresAt }, validity)),
    ...member("upstreamOrderUrl", order.upstreamOrderUrl),
    ...member("upstreamFinalizeUrl", order.upstreamFinalizeUrl),
    ...member("upstreamCertificateUrl", order.upstreamCertificateUrl),
    ...member("error", order.error),
    ...member("requestId", order.requestId),
    ...member("clientIp", order.clientIp),
    ...member("clientPtr", order.clientPtr),
    ...member("userAgent", order.userAgent),
    createdAt: rfc3339(order.createdAt),
    updatedAt: rfc3339(order.updatedAt)
  }
}

/** A job with the order that it is about. */
export const jobDetailObject = (config: Config, { job, orderId, upstreamOrder }: JobDetail, now: number) => ({
  ...jobObject(job),
  ...member("orderId", orderId),
  ...member("upstreamOrder", upstreamOrder === undefined ? undefined : upstreamOrderObject(config, upstreamOrder, now))
})

const staleAfterSeconds = 30

/**
 * A process that serves or has served. It is `stale` if it has not been seen for half a minute. `failing` has its
 * background loops that keep failing.
 */
export const workerObject = (
  worker: Effect.Success<typeof workers.list>[number],
  now: number
) => ({
  owner: worker.owner,
  roles: worker.roles.split(","),
  version: worker.version,
  startedAt: rfc3339(worker.startedAt),
  lastSeenAt: rfc3339(worker.lastSeenAt),
  stale: now - worker.lastSeenAt > staleAfterSeconds,
  failing: worker.failing.split(" ").filter((loop: string) => loop !== "")
})

const authorizationObjects = (
  challenges: ReadonlyArray<ChallengeRecord>,
  orderStatus: OrderStatus,
  validity: number,
  now: number
) => {
  const byId = Array.groupBy(challenges, ({ authzId }) => authzId)
  return Object.entries(byId).flatMap(([id, offered]) => {
    const [first] = offered
    if (first === undefined) return []
    const name = DnsName.make(first.identifier.value, { disableChecks: true })
    return [{
      id,
      identifier: { type: first.identifier.type, value: baseName(name) },
      status: authorizationShown({ ...first, status: first.authzStatus, orderStatus }, validity, now),
      expires: rfc3339(expiryOf(first, validity)),
      ...(isWildcard(name) ? { wildcard: true } : {}),
      ...(first.id === undefined && first.authzStatus === "valid" ? { provedBy: "credential" as const } : {}),
      challenges: offered.flatMap(({ cause, error, id, status, type, validatedAt }) =>
        id === undefined || type === undefined || status === undefined ? [] : [{
          id,
          type,
          status,
          ...timeMember("validated", validatedAt),
          ...member("error", error),
          ...member("cause", cause)
        }]
      )
    }]
  })
}

type OrderDetail = Effect.Success<ReturnType<typeof detail>>

/** An order with all its related records. */
export const orderDetailObject = (config: Config, found: OrderDetail, now: number) => ({
  ...orderObject(config, found.order, now),
  ...member("certificatePem", found.order.certificate),
  authorizations: authorizationObjects(
    found.challenges,
    found.order.status,
    validityOf(config, found.order.profile),
    now
  ),
  jobs: found.jobs.map(jobObject),
  ...member("replacedBy", found.replacedBy),
  ...member("notGranted", found.notGranted),
  ...member("explanation", found.explanation)
})

/** A CA and the state of its revocation list. */
export const crlObject = (
  { ca, caState, entries, issuance, issuer, profiles, state, stored, trouble, unlisted }: CrlView
) => ({
  issuer,
  ...(ca === undefined ? {} : {
    subject: ca.subject,
    sha256: ca.sha256,
    keyType: ca.keyType,
    keySource: ca.keySource,
    notBefore: rfc3339(ca.notBefore),
    notAfter: rfc3339(ca.notAfter),
    chainNotAfter: rfc3339(ca.firstToEnd.notAfter),
    chainEndsWith: ca.firstToEnd.subject
  }),
  ...member("caState", caState),
  ...member("issuance", issuance),
  profiles,
  ...member("crlNumber", stored?.crlNumber),
  ...timeMember("thisUpdate", stored?.thisUpdate),
  ...timeMember("nextUpdate", stored?.nextUpdate),
  entries,
  unlisted,
  state,
  ...member("trouble", trouble)
})

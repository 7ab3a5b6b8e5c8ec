import { Data, Effect } from "effect"
import type { AuditRow } from "../../domain/Audit.ts"
import type { AccountId, OrderId } from "../../domain/Id.ts"
import type { OrderIdentifier } from "../../domain/Order.ts"
import { shareOf } from "../../kernel/queue/Job.ts"
import { Queue } from "../../kernel/queue/Queue.ts"
import type { StorageFailed } from "../../kernel/sql/Database.ts"
import { afterCommit, Database, transaction } from "../../kernel/sql/Database.ts"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import { currentSeconds } from "../../kernel/Time.ts"
import { fingerprint } from "../../pki/jose/Jws.ts"
import { readStoredChain } from "../../pki/x509/Chain.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import * as audit from "../../store/Audit.ts"
import * as orders from "../../store/orders/Orders.ts"
import * as burntKeys from "../../store/revocation/BurntKeys.ts"
import * as crls from "../../store/revocation/Crls.ts"
import * as revocations from "../../store/revocation/Revocations.ts"

/** Codes of RFC 5280 section 5.3.1 a revocation may state: 7 is unused, 10 the last. */
export const isAcceptedReason = (code: number): boolean => code >= 0 && code <= 10 && code !== 7

/** The certificate was revoked before; by whoever came first. */
class WasRevoked extends Data.TaggedError("WasRevoked") {}

/** No worker has met the CA that signed the certificate, so no list would ever name it. */
class IssuerUnknown extends Data.TaggedError("IssuerUnknown")<{ readonly issuer: string | undefined }> {}

/** A certificate that is stored here, as far as revoking it goes. */
export interface Revocable {
  readonly orderId: OrderId
  readonly accountId: AccountId
  readonly profile: string
  readonly identifiers: ReadonlyArray<OrderIdentifier>
  /** PEM chain, leaf first. */
  readonly certificate: string
  readonly serial: string
  /** DER SubjectPublicKeyInfo. */
  readonly certPubkey: Uint8Array | undefined
}

/** Who has it revoked, as the audit row names them. */
export type RevokedBy = Pick<
  AuditRow<"certificate_revoked">,
  "actorKind" | "actorId" | "clientIp" | "clientPtr" | "userAgent" | "requestId" | "detail"
>

/** The reason that a key is known to others (RFC 5280 section 5.3.1). */
export const keyCompromise = 1

/** Writes that belong to a revocation: they commit with it, or with what says that there was one before. */
type During = Effect.Effect<void, StorageFailed, Database | Queue>

/**
 * What a revocation for keyCompromise makes of the key: nobody gets it certified any more, and the key's holder, who has
 * proven that he knows it, has every other certificate of it revoked too. An account alone can say so of itself only, lest
 * one account end what another one uses.
 */
export const burn = Effect.fnUntraced(function*(
  { accountId, certPubkey: pubkey, orderId }: Pick<Revocable, "accountId" | "certPubkey" | "orderId">,
  reason: number | undefined,
  by: RevokedBy
) {
  if (reason !== keyCompromise || pubkey === undefined) return
  const { authorized_by } = by.detail
  const isAlone = authorized_by === "account"
  yield* burntKeys.insert({ pubkey, accountId: isAlone ? accountId : burntKeys.everybody, now: yield* currentSeconds })
  const key_fp = fingerprint(pubkey)
  yield* afterCommit(emit("key_burnt", { key_fp, order_id: orderId, scope: isAlone ? "account" : "everybody" }))
  if (authorized_by !== "certificate_key") return
  const queue = yield* Queue
  yield* queue.enqueue({
    kind: "key_revoke",
    dedupKey: key_fp,
    payload: {
      pubkey: Buffer.from(pubkey).toString("base64url"),
      client: { ip: by.clientIp, ptr: by.clientPtr, user_agent: by.userAgent, request_id: by.requestId }
    }
  })
})

/**
 * Revokes a certificate of a local CA: the order's stamp, the row of the list, that of the trail, the job that signs it and
 * what is made of the key are one transaction. The first revocation wins, whatever reason another one brings. Answers the id
 * of the signing job.
 */
const revokeLocally = Effect.fnUntraced(function*(
  found: Revocable,
  issuer: string,
  reason: number | undefined,
  by: RevokedBy,
  during: During
) {
  const { accountId, identifiers, orderId, profile, serial } = found
  const now = yield* currentSeconds
  const row = audit.insert({
    event: "certificate_revoked",
    profile,
    accountId,
    orderId,
    certSerial: serial,
    identifiers: identifiers.map(({ value }) => value),
    ...(reason === undefined ? {} : { reason: String(reason) }),
    ...by
  })
  const queue = yield* Queue
  // Losing is no failure of the transaction: its neighbours would have to run again.
  const job = yield* transaction(Effect.gen(function*() {
    yield* orders.lock(orderId)
    yield* during
    const stamped = yield* revocations.stampOrder({ id: orderId, now, reason })
    if (stamped === undefined) return undefined
    const { certNotAfter = -1 } = stamped
    const notAfter = certNotAfter < 0 ? undefined : certNotAfter
    yield* revocations.insert({ issuer, serial, now, reason, notAfter })
    yield* row
    yield* afterCommit(emit("certificate_revoked", { order_id: orderId, cert_serial: serial, code: reason }))
    return yield* queue.enqueue({ kind: "local_ca_crl_regenerate", dedupKey: issuer, payload: { issuer } })
  }))
  return job ?? (yield* new WasRevoked())
})

/** Queues the question to the signer; one that is queued already, or under way, is joined with the reason it has. */
const queueRevocation = Effect.fnUntraced(function*(
  found: Revocable,
  reason: number | undefined,
  by: RevokedBy,
  during: During
) {
  const { accountId, orderId, profile, serial } = found
  const queue = yield* Queue
  const enqueued = Effect.zipLeft(
    queue.enqueue({
      kind: "signer_revoke",
      dedupKey: orderId,
      share: shareOf(profile, accountId),
      payload: {
        order_id: orderId,
        profile,
        ...(reason === undefined ? {} : { reason }),
        actor: { kind: by.actorKind, ...(by.actorId === undefined ? {} : { id: by.actorId }) },
        client: { ip: by.clientIp, ptr: by.clientPtr, user_agent: by.userAgent, request_id: by.requestId }
      }
    }),
    afterCommit(emit("certificate_revoke_queued", { order_id: orderId, cert_serial: serial, code: reason }))
  )
  return yield* transaction(Effect.zipRight(during, enqueued))
})

/**
 * Revokes a certificate, or has it revoked. One that a CA of this service signed is listed by that CA, whatever signs for
 * the profile today, and reads revoked at once: `job` signs the list. Any other is for the profile's signer to revoke:
 * `job` asks it, and the order reads revoked when it has said yes; so too where `backend` is not known.
 */
export const revoke = Effect.fnUntraced(function*(
  found: Revocable,
  backend: ProfileConfig["signer"]["backend"] | undefined,
  reason: number | undefined,
  by: RevokedBy,
  during: During = Effect.void
) {
  const issuer = readStoredChain(found.certificate)?.issuerId
  if (issuer !== undefined && (yield* crls.findHead(issuer)) !== undefined) {
    return { isRevoked: true, job: yield* revokeLocally(found, issuer, reason, by, during) }
  }
  if (backend === "local_ca") {
    yield* emit("local_ca_issuer_mismatch", { order_id: found.orderId, issuer })
    return yield* new IssuerUnknown({ issuer })
  }
  return { isRevoked: false, job: yield* queueRevocation(found, reason, by, during) }
})

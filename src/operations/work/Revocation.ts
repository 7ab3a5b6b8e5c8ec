import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { fingerprint } from "../../crypto/jose/Jws.ts"
import { readStoredChain } from "../../crypto/x509/Chain.ts"
import type { AuditRow } from "../../domain/Audit.ts"
import type { AccountId, OrderId } from "../../domain/Id.ts"
import type { OrderIdentifier } from "../../domain/Order.ts"
import { keyCompromise } from "../../domain/RevocationReason.ts"
import type { SignerBackend } from "../../domain/SignerBackend.ts"
import { enqueueJob } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { shareOf } from "../../engine/queue/Job.ts"
import type { Queue } from "../../engine/queue/Queue.ts"
import type { StorageFailed } from "../../engine/sql/Database.ts"
import { afterCommit, Database, transaction } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { notify } from "../../services/notify/Notifier.ts"
import * as audit from "../../store/AuditRows.ts"
import * as orders from "../../store/orders/OrderRows.ts"
import * as burntKeys from "../../store/revocation/BurntKeys.ts"
import * as crls from "../../store/revocation/Crls.ts"
import * as revocations from "../../store/revocation/Revocations.ts"
import { refuseStopped } from "../ProfileHealth.ts"
import { enqueueList } from "./crl/ListJob.ts"
import { due } from "./SignerRevocation.ts"

/** The certificate was already revoked, perhaps by a concurrent request. */
class WasRevoked extends Data.TaggedError("WasRevoked") {}

/** No worker knows the CA that signed the certificate, so no list would ever contain the certificate. */
class IssuerUnknown extends Data.TaggedError("IssuerUnknown")<{ readonly issuer: string | undefined }> {}

/** A certificate that is stored here, with the fields that its revocation needs. */
export interface Revocable {
  readonly orderId: OrderId
  readonly accountId: AccountId
  readonly profile: string
  readonly identifiers: ReadonlyArray<OrderIdentifier>
  /** The chain as PEM, leaf first. */
  readonly certificate: string
  readonly serial: string
  /** The public key of the certificate as DER SubjectPublicKeyInfo. */
  readonly certPubkey: Uint8Array | undefined
}

/** The actor of the revocation, as recorded in the audit row. */
export type RevokedBy = Pick<
  AuditRow<"certificate_revoked">,
  "actorKind" | "actorId" | "clientIp" | "clientPtr" | "userAgent" | "requestId" | "detail"
>

/**
 * Writes that belong to a revocation. They are committed together with the revocation, or together with the finding
 * that the certificate was already revoked.
 */
type During = Effect.Effect<void, StorageFailed, Database | Queue>

/**
 * Burns the key of a certificate that was revoked for keyCompromise, so that the key is never certified again. If the
 * request was signed with this key, the sender has proved possession of the key, and every other certificate of the key
 * is revoked too. If an account signed the request, the key is burnt only for that account, so that one account cannot
 * revoke the certificates of another account.
 */
export const burn = Effect.fnUntraced(function*(
  { accountId, certPubkey: pubkey, orderId, profile }: Pick<
    Revocable,
    "accountId" | "certPubkey" | "orderId" | "profile"
  >,
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
  yield* enqueueJob({
    kind: "key_revoke",
    dedupKey: key_fp,
    share: shareOf(profile, accountId),
    payload: {
      pubkey: Buffer.from(pubkey).toString("base64url"),
      client: { ip: by.clientIp, ptr: by.clientPtr, user_agent: by.userAgent, request_id: by.requestId }
    }
  })
})

/**
 * Revokes a certificate of a local CA. One transaction marks the order, inserts the row of the list and the audit row,
 * queues the signing job, and burns the key. If the certificate is revoked twice, the first revocation counts, whatever
 * reason the second revocation states. Returns the id of the signing job.
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
  // If another revocation was first, the transaction does not fail, because the other bodies in its group commit would
  // then have to run again.
  const job = yield* transaction(Effect.gen(function*() {
    yield* orders.lock(orderId)
    yield* during
    const stamped = yield* revocations.stampOrder({ id: orderId, now, reason })
    if (stamped === undefined) return undefined
    const { certNotAfter = -1 } = stamped
    const notAfter = certNotAfter < 0 ? undefined : certNotAfter
    yield* revocations.insert({ issuer, serial, now, reason, notAfter })
    yield* row
    yield* notify({
      event: "certificate_revoked",
      scope: profile,
      fields: {
        order_id: orderId,
        account_id: accountId,
        cert_serial: serial,
        identifiers: identifiers.map(({ value }) => value),
        reason,
        client_ip: by.clientIp
      }
    })
    yield* afterCommit(emit("certificate_revoked", { order_id: orderId, cert_serial: serial, code: reason }))
    return yield* enqueueList(issuer)
  }))
  return job ?? (yield* new WasRevoked())
})

/**
 * Queues a job that asks the signer. If such a job is already queued or running, the request joins that job, and the
 * job keeps its reason. If the signer told an earlier job to wait, the new job waits until then.
 */
const queueRevocation = Effect.fnUntraced(function*(
  found: Revocable,
  reason: number | undefined,
  by: RevokedBy,
  during: During
) {
  const { accountId, orderId, profile, serial } = found
  const runAt = yield* due(orderId)
  const enqueued = Effect.tap(
    enqueueJob({
      kind: "signer_revoke",
      dedupKey: orderId,
      share: shareOf(profile, accountId),
      ...(runAt === undefined ? {} : { runAt }),
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
  return yield* transaction(Effect.andThen(during, enqueued))
})

/**
 * Revokes a certificate, or queues its revocation. If a CA of this service signed the certificate, that CA lists it,
 * whatever signer the profile has today: the order is revoked at once, and `job` signs the list. Otherwise the
 * profile's signer must revoke the certificate: `job` asks this signer, and the order is revoked once the signer has
 * confirmed. This also applies if `backend` is not known.
 */
export const revoke = Effect.fnUntraced(function*(
  found: Revocable,
  backend: SignerBackend | undefined,
  reason: number | undefined,
  by: RevokedBy,
  during: During = Effect.void
) {
  const issuer = readStoredChain(found.certificate)?.issuerId
  if (issuer !== undefined && (yield* crls.findHead(issuer)) !== undefined) {
    yield* refuseStopped(issuer)
    return { isRevoked: true, job: yield* revokeLocally(found, issuer, reason, by, during) }
  }
  if (backend === "local_ca") {
    yield* emit("local_ca_issuer_mismatch", { order_id: found.orderId, issuer })
    return yield* new IssuerUnknown({ issuer })
  }
  return { isRevoked: false, job: yield* queueRevocation(found, reason, by, during) }
})

import { Data, Effect } from "effect"
import type { AuditRow } from "../domain/Audit.ts"
import type { AccountId, OrderId } from "../domain/Id.ts"
import type { OrderIdentifier } from "../domain/Order.ts"
import { readStoredChain } from "../subsystems/crypto/Chain.ts"
import * as audit from "../subsystems/db/audit.ts"
import * as crls from "../subsystems/db/crls.ts"
import { afterCommit, Database, transaction } from "../subsystems/db/Database.ts"
import * as orders from "../subsystems/db/orders.ts"
import * as revocations from "../subsystems/db/revocations.ts"
import { emit } from "../subsystems/log/EventLog.ts"
import { Queue } from "../subsystems/queue/Queue.ts"
import { currentSeconds } from "./acme/caller.ts"

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
}

/** Who has it revoked, as the audit row names them. */
export type RevokedBy = Pick<
  AuditRow<"certificate_revoked">,
  "actorKind" | "actorId" | "clientIp" | "clientPtr" | "userAgent" | "requestId" | "detail"
>

/**
 * Revokes a certificate of a local CA: the order's stamp, the row of the list and the job that signs it are one
 * transaction. The first revocation wins, whatever reason another one brings. The certificate is listed by the CA that
 * signed it, whichever CA the profile names today. Answers the id of the signing job.
 */
export const revokeLocally = Effect.fnUntraced(function*(
  found: Revocable,
  reason: number | undefined,
  by: RevokedBy
) {
  const { accountId, identifiers, orderId, profile, serial } = found
  const issuer = readStoredChain(found.certificate)?.issuerId
  if (issuer === undefined || (yield* crls.findHead(issuer)) === undefined) {
    yield* emit("local_ca_issuer_mismatch", { order_id: orderId, issuer })
    return yield* new IssuerUnknown({ issuer })
  }
  const now = yield* currentSeconds
  const database = yield* Database
  const row = audit.record({
    event: "certificate_revoked",
    profile,
    accountId,
    orderId,
    certSerial: serial,
    identifiers: identifiers.map(({ value }) => value),
    ...(reason === undefined ? {} : { reason: String(reason) }),
    ...by
  })
  const told = Effect.zipRight(
    emit("certificate_revoked", { order_id: orderId, cert_serial: serial, code: reason }),
    Effect.provideService(row, Database, database)
  )
  const queue = yield* Queue
  // Losing is no failure of the transaction: its neighbours would have to run again.
  const job = yield* transaction(Effect.gen(function*() {
    yield* orders.lock(orderId)
    const stamped = yield* revocations.stampOrder({ id: orderId, now, reason })
    if (stamped === undefined) return undefined
    const { certNotAfter = -1 } = stamped
    const notAfter = certNotAfter < 0 ? undefined : certNotAfter
    yield* revocations.insert({ issuer, serial, now, reason, notAfter })
    yield* afterCommit(told)
    return yield* queue.enqueue({ kind: "local_ca_crl_regenerate", dedupKey: issuer, payload: { issuer } })
  }))
  return job ?? (yield* new WasRevoked())
})

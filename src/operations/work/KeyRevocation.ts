import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { fingerprint } from "../../crypto/jose/Jws.ts"
import { OrderId } from "../../domain/Id.ts"
import { ListNotSigned } from "../../domain/JobFailure.ts"
import { keyCompromise } from "../../domain/RevocationReason.ts"
import type { PayloadOf } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Job } from "../../engine/queue/Job.ts"
import { Done, Retry } from "../../engine/queue/Outcome.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { pages } from "../../engine/sql/Pages.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as certificates from "../../store/orders/CertificateRows.ts"
import { awaitStoring } from "../../store/RowLock.ts"
import type { RevokedBy } from "./Revocation.ts"
import { revoke } from "./Revocation.ts"

const pageSize = 100

/**
 * Revokes every live certificate of a key that was burnt for everybody (docs/contribute/decisions/keys-and-chains.md,
 * "Who may burn a key"). Each certificate is revoked by its own backend. A repeated attempt finds the certificates that
 * remain.
 */
export const revokeAll = Effect.fnUntraced(function*({ client, pubkey }: PayloadOf<"key_revoke">, job: Job) {
  const key = Buffer.from(pubkey, "base64url")
  const by: RevokedBy = {
    actorKind: "acme",
    actorId: undefined,
    clientIp: client.ip,
    clientPtr: client.ptr,
    userAgent: client.user_agent,
    requestId: client.request_id,
    detail: { authorized_by: "certificate_key" }
  }
  yield* transaction(awaitStoring)
  const now = yield* currentSeconds
  const live = pages({
    from: OrderId("00000000-0000-0000-0000-000000000000"),
    size: pageSize,
    read: (after, limit) => certificates.liveOfKey({ pubkey: key, now, after, limit }),
    keyOf: ({ orderId }) => orderId
  })
  const revoked = yield* live.pipe(
    Stream.flattenIterable,
    // The signer is not known here. If no CA of this service signed the certificate, the job asks the signer that the
    // profile has at the time when the job runs.
    Stream.mapEffect((found) =>
      revoke(found, undefined, keyCompromise, by).pipe(
        Effect.as(1),
        Effect.catchTags({ WasRevoked: () => Effect.succeed(0), IssuerUnknown: () => Effect.succeed(0) })
      )
    ),
    Stream.runSum,
    Effect.catchTag("ListsStopped", ({ trouble }) => Effect.succeed(Retry(new ListNotSigned({ detail: trouble }))))
  )
  if (typeof revoked !== "number") return revoked
  if (revoked > 0) yield* emit("key_certificates_revoked", { key_fp: fingerprint(key), job_id: job.id, count: revoked })
  return Done()
})

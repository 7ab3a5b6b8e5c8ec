import * as Effect from "effect/Effect"
import { OrderId } from "../../domain/Id.ts"
import { emit } from "../../domain/words/Log.ts"
import { count } from "../../domain/words/Series.ts"
import { afterCommit } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as audit from "../../store/AuditRows.ts"
import type { OrphanStatus } from "../../store/orders/OrphanedCertificateRows.ts"
import * as rows from "../../store/orders/OrphanedCertificateRows.ts"
import type { Actor } from "../Operator.ts"

/*
 * What finally happens to a certificate whose order ended without it
 * (docs/contribute/decisions/orphaned-certificates.md).
 */

/** A certificate that is not revoked. */
export type Open = Effect.Success<ReturnType<typeof rows.open>>[number]

/** Who gave a revocation up. */
type By = { readonly actorKind: "system"; readonly actorId: undefined } | Actor

/**
 * Records the final state of a certificate in its row, in the log and in the metrics. The audit trail also records a
 * certificate that was revoked or kept.
 */
export const settle = (
  { order_id, profile }: { readonly order_id: string; readonly profile: string },
  { fingerprint, serial }: Open,
  status: Exclude<OrphanStatus, "waiting">,
  { by = { actorKind: "system", actorId: undefined }, error }: { readonly by?: By; readonly error?: string } = {}
) =>
  Effect.gen(function*() {
    const orderId = OrderId(order_id)
    const now = yield* currentSeconds
    if ((yield* rows.settle({ orderId, fingerprint, status, error, now })) === undefined) return
    const about = { profile, orderId, certSerial: serial }
    const facts = { order_id, profile, cert_serial: serial }
    switch (status) {
      case "revoked":
        yield* audit.insert({
          event: "certificate_orphan_revoked",
          actorKind: "system",
          actorId: undefined,
          ...about,
          detail: {}
        })
        yield* afterCommit(emit("certificate_orphan_revoked", facts))
        break
      case "kept":
        yield* audit.insert({ event: "certificate_orphan_kept", ...by, ...about, detail: { error: error ?? "" } })
        yield* afterCommit(emit("certificate_orphan_kept", { ...facts, error: error ?? "" }))
        break
      case "stored":
        yield* afterCommit(emit("certificate_orphan_stored", facts))
        break
      case "expired":
    }
    yield* afterCommit(count("acme_svc_orphaned_certificates_total", { profile, state: status }))
  })

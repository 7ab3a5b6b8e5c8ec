import { Effect, Either } from "effect"
import { BadCsr, OrderNotReady } from "../../domain/AcmeError.ts"
import type { OrderId } from "../../domain/Id.ts"
import { expiresAt } from "../../domain/Order.ts"
import type { Csr } from "../../subsystems/crypto/Csr.ts"
import { checkCsrNames, parseCsr } from "../../subsystems/crypto/Csr.ts"
import { CsrRefused } from "../../subsystems/crypto/CsrRefused.ts"
import * as audit from "../../subsystems/db/audit.ts"
import * as certificates from "../../subsystems/db/certificates.ts"
import { afterCommit, transaction } from "../../subsystems/db/Database.ts"
import * as orders from "../../subsystems/db/orders.ts"
import { emit } from "../../subsystems/log/EventLog.ts"
import { Queue } from "../../subsystems/queue/Queue.ts"
import type { Caller } from "./caller.ts"
import { auditFacts, currentSeconds, scopeOf } from "./caller.ts"
import type { OrderView } from "./orders.ts"
import { find } from "./orders.ts"

// RFC 8555 wants base64url; padding is tolerated here alone, because some clients send it.
const decodeCsr = (text: string): Either.Either<Csr, CsrRefused> => {
  const der = Buffer.from(text, "base64url")
  return der.toString("base64url") === text.replace(/={1,2}$/, "")
    ? parseCsr(der)
    : Either.left(new CsrRefused({ reason: "undecodable", detail: "The CSR is not base64url." }))
}

const acceptCsr = Effect.fnUntraced(function*(caller: Caller, order: OrderView, text: string) {
  const csr = yield* decodeCsr(text)
  if (Buffer.compare(csr.spki, caller.pubkey) === 0) {
    return yield* new CsrRefused({ reason: "account_key", detail: "The account key cannot be certified." })
  }
  if (yield* certificates.isCompromised(csr.spki)) {
    return yield* new CsrRefused({
      reason: "burnt_key",
      detail: "A certificate for this key was revoked for key compromise."
    })
  }
  yield* checkCsrNames(csr, order.identifiers.map(({ value }) => value))
  return csr
})

const refused = Effect.fnUntraced(function*(caller: Caller, order: OrderView, error: CsrRefused) {
  yield* emit("csr_rejected", { order_id: order.id, reason: error.reason })
  yield* audit.record({
    event: "certificate_issue_failed",
    actorKind: "acme",
    actorId: caller.accountId,
    accountId: caller.accountId,
    orderId: order.id,
    identifiers: order.identifiers.map(({ value }) => value),
    reason: "badCSR",
    ...auditFacts(caller.profile.name, caller.client),
    detail: { cause: "bad_csr", error: error.detail }
  })
  return yield* new BadCsr({ detail: error.detail })
})

/** Claims the order and queues its signing, or says that somebody else has. */
const claimAndEnqueue = Effect.fnUntraced(function*(caller: Caller, order: OrderView, csr: Csr, now: number) {
  const { profile } = caller
  const { id } = order
  yield* orders.lock(id)
  const claimed = yield* orders.claim({ id, createdAfter: now - profile.order.validity_seconds, ...scopeOf(caller) })
  if (claimed === undefined) return yield* new OrderNotReady()
  const queue = yield* Queue
  yield* queue.enqueue({
    kind: "signer_issue",
    dedupKey: id,
    payload: {
      order_id: id,
      profile: profile.name,
      csr: Buffer.from(csr.der).toString("base64url"),
      client: caller.client
    },
    deadline: expiresAt(order.createdAt, profile.order.validity_seconds)
  })
  yield* afterCommit(emit("order_finalize_queued", { order_id: id }))
})

/**
 * Finalize (RFC 8555 section 7.4): the CSR is judged in full, then one transaction claims the order and queues its
 * signing. Whoever loses the claim is told the order is not ready.
 */
export const finalize = Effect.fnUntraced(function*(caller: Caller, id: OrderId, csrText: string) {
  const { profile } = caller
  const order = yield* find(caller, id)
  const now = yield* currentSeconds
  const expires = expiresAt(order.createdAt, profile.order.validity_seconds)
  if (order.status !== "ready" || now >= expires) {
    yield* emit("order_finalize_rejected", { order_id: id, reason: now >= expires ? "expired" : "not_ready" })
    return yield* new OrderNotReady()
  }
  const csr = yield* Effect.catchTag(
    acceptCsr(caller, order, csrText),
    "CsrRefused",
    (error) => refused(caller, order, error)
  )
  yield* Effect.tapErrorTag(
    transaction(claimAndEnqueue(caller, order, csr, now)),
    "OrderNotReady",
    () => emit("order_finalize_rejected", { order_id: id, reason: "claim_lost" })
  )
  const processing: OrderView = { ...order, status: "processing" }
  return processing
})

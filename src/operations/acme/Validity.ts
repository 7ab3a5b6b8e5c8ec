import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { namedLeafOf } from "../../crypto/x509/CertId.ts"
import type { ValidityWindow } from "../../crypto/x509/Leaf.ts"
import { validityWindow } from "../../crypto/x509/Leaf.ts"
import { Malformed } from "../../domain/AcmeError.ts"
import type { CertificateKind } from "../../domain/CertificateKind.ts"
import { boundedKind, kindOfOrder } from "../../domain/CertificateKind.ts"
import type { Order } from "../../domain/Order.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { tellUnreadable } from "../../engine/sql/Query.ts"
import { rfc3339 } from "../../engine/Time.ts"
import type { Issuer } from "../../services/signing/Issuers.ts"
import { Issuers } from "../../services/signing/Issuers.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import { certificateKinds } from "../../settings/CertificateKinds.ts"
import * as certificates from "../../store/orders/CertificateRows.ts"
import type { Caller } from "../Caller.ts"
import { unreadableChain } from "../StoredCertificate.ts"
import { scopeOfCaller } from "./Scope.ts"

/*
 * The validity that an order requests, and the validity of its certificate (RFC 8555 section 7.4). The row keeps the
 * requested dates. Only the local CA knows in advance which dates it will grant. A relay sends the requested dates to
 * its upstream. A program does not receive them.
 */

/** The dates that a client requests, in epoch seconds. */
export interface Wish {
  readonly notBefore: number | undefined
  readonly notAfter: number | undefined
}

const isWish = ({ notAfter, notBefore }: Wish): boolean => notAfter !== undefined || notBefore !== undefined

/**
 * Returns the validity that a local CA grants for a kind of certificate. `issuer` is absent if the certificate of the
 * CA cannot be read at present.
 */
export const windowOf = (
  { validitySeconds }: CertificateKind,
  issuer: Issuer | undefined,
  { notAfter, notBefore }: Wish,
  { now, orderedAt }: { readonly now: number; readonly orderedAt: number }
): Result.Result<ValidityWindow, "issuer_expired"> =>
  validityWindow({
    now,
    orderedAt,
    validitySeconds,
    requestedNotBefore: notBefore,
    requestedNotAfter: notAfter,
    issuerNotBefore: issuer?.notBefore ?? -Infinity,
    issuerNotAfter: issuer?.firstToEnd.notAfter ?? Infinity
  })

/**
 * Returns a problem if it is known that no certificate of this profile and kind can have the requested validity,
 * because nothing of the requested period would be left.
 */
export const unattainable = (
  profile: ProfileConfig,
  kind: CertificateKind,
  issuers: Issuers["Service"],
  wish: Wish,
  now: number
): Malformed | undefined => {
  if (!isWish(wish) || profile.signer.backend !== "local_ca") return undefined
  const issuer = issuers.of(profile.name, now)
  const at = { now, orderedAt: now }
  const longest = windowOf(kind, issuer, { notBefore: undefined, notAfter: undefined }, at)
  if (Result.isFailure(longest)) return undefined // the CA has expired, which is not a fault of the request
  const window = windowOf(kind, issuer, wish, at)
  if (Result.isSuccess(window) && !window.success.discardedRequest) return undefined
  const { notAfter, notBefore } = longest.success
  return new Malformed({
    detail: `No certificate can have the validity that notBefore and notAfter ask for: it has to lie between ${
      rfc3339(notBefore)
    } and ${rfc3339(notAfter)}.`
  })
}

const nothing: Wish = { notBefore: undefined, notAfter: undefined }

/**
 * Returns the dates of the certificate of a valid order. If the certificate cannot be read, logs that and returns no
 * dates.
 */
const issued = (order: Order): Effect.Effect<Wish, StorageFailed, Database> =>
  Effect.flatMap(certificates.certificate(order), (row) => {
    if (row === undefined) return Effect.succeed(nothing)
    const leaf = namedLeafOf(row.certificate)
    return leaf === undefined
      ? Effect.as(tellUnreadable(unreadableChain("order_certificate", order.id)), nothing)
      : Effect.succeed(leaf)
  })

/**
 * Returns the dates that a client sees in its order. Once the certificate exists, these are the dates of the
 * certificate. Before that, they are the dates that the certificate will have, as far as they are known.
 */
export const datesOf = (
  caller: Caller,
  order: Order,
  now: number
): Effect.Effect<Wish, StorageFailed, Database | Issuers> => {
  const { profile } = caller
  if (!isWish(order)) return Effect.succeed(nothing)
  const of = ({ notAfter, notBefore }: Wish): Wish => ({
    notBefore: order.notBefore === undefined ? undefined : notBefore,
    notAfter: order.notAfter === undefined ? undefined : notAfter
  })
  if (order.status === "valid") return Effect.map(issued(order), of)
  if (profile.signer.backend !== "local_ca") return Effect.succeed(nothing)
  const kind = kindOfOrder(certificateKinds(profile), order.kind)
  if (kind === undefined) return Effect.succeed(nothing)
  return Effect.gen(function*() {
    const issuers = yield* Issuers
    const bounded = boundedKind(kind, (yield* scopeOfCaller(caller)).validitySeconds)
    const window = windowOf(bounded, issuers.of(profile.name, now), order, { now, orderedAt: order.createdAt })
    return Result.isSuccess(window) ? of(window.success) : nothing
  })
}

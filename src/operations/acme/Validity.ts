import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { namedLeafOf } from "../../crypto/x509/CertId.ts"
import type { ValidityWindow } from "../../crypto/x509/Leaf.ts"
import { validityWindow } from "../../crypto/x509/Leaf.ts"
import { Malformed } from "../../domain/AcmeError.ts"
import type { Order } from "../../domain/Order.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { tellUnreadable } from "../../engine/sql/Query.ts"
import { rfc3339 } from "../../engine/Time.ts"
import type { Issuer } from "../../services/signing/Issuers.ts"
import { Issuers } from "../../services/signing/Issuers.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import * as certificates from "../../store/orders/CertificateRows.ts"
import { unreadableChain } from "../StoredCertificate.ts"

/*
 * The validity that an order asks for, and the one its certificate gets (RFC 8555 section 7.4). The row keeps the wish. Only
 * the local CA says beforehand what it will give. A relay passes the wish on, and a program is not told of it.
 */

/** What a client asks for, in epoch seconds. */
export interface Wish {
  readonly notBefore: number | undefined
  readonly notAfter: number | undefined
}

const isWish = ({ notAfter, notBefore }: Wish): boolean => notAfter !== undefined || notBefore !== undefined

/** What the local CA of a profile gives. `issuer` is absent where its certificate cannot be read at present. */
const windowOf = (
  { signer }: ProfileConfig,
  issuer: Issuer | undefined,
  { notAfter, notBefore }: Wish,
  { now, orderedAt }: { readonly now: number; readonly orderedAt: number }
): Result.Result<ValidityWindow, "issuer_expired"> =>
  validityWindow({
    now,
    orderedAt,
    validityDays: signer.local_ca.leaf_validity_days,
    requestedNotBefore: notBefore,
    requestedNotAfter: notAfter,
    issuerNotBefore: issuer?.notBefore ?? -Infinity,
    issuerNotAfter: issuer?.firstToEnd.notAfter ?? Infinity
  })

/** Why no certificate of this profile can have the validity, if that is known: nothing would be left of the wish. */
export const unattainable = (
  profile: ProfileConfig,
  issuer: Issuer | undefined,
  wish: Wish,
  now: number
): Malformed | undefined => {
  if (!isWish(wish) || profile.signer.backend !== "local_ca") return undefined
  const at = { now, orderedAt: now }
  const longest = windowOf(profile, issuer, { notBefore: undefined, notAfter: undefined }, at)
  if (Result.isFailure(longest)) return undefined // the CA has ended, which is no fault of the wish
  const window = windowOf(profile, issuer, wish, at)
  if (Result.isSuccess(window) && !window.success.discardedRequest) return undefined
  const { notAfter, notBefore } = longest.success
  return new Malformed({
    detail: `No certificate can have the validity that notBefore and notAfter ask for: it has to lie between ${
      rfc3339(notBefore)
    } and ${rfc3339(notAfter)}.`
  })
}

const nothing: Wish = { notBefore: undefined, notAfter: undefined }

/** The dates of the certificate of a valid order; none if it cannot be read, which is recorded. */
const issued = (order: Order): Effect.Effect<Wish, StorageFailed, Database> =>
  Effect.flatMap(certificates.certificate(order), (row) => {
    if (row === undefined) return Effect.succeed(nothing)
    const leaf = namedLeafOf(row.certificate)
    return leaf === undefined
      ? Effect.as(tellUnreadable(unreadableChain("order_certificate", order.id)), nothing)
      : Effect.succeed(leaf)
  })

/**
 * The dates that a client is shown for those that it asked for: of the certificate once there is one, before that those that it
 * will have as far as they are known.
 */
export const datesOf = (
  profile: ProfileConfig,
  order: Order,
  now: number
): Effect.Effect<Wish, StorageFailed, Database | Issuers> => {
  if (!isWish(order)) return Effect.succeed(nothing)
  const of = ({ notAfter, notBefore }: Wish): Wish => ({
    notBefore: order.notBefore === undefined ? undefined : notBefore,
    notAfter: order.notAfter === undefined ? undefined : notAfter
  })
  if (order.status === "valid") return Effect.map(issued(order), of)
  if (profile.signer.backend !== "local_ca") return Effect.succeed(nothing)
  return Issuers.use((issuers) => {
    const window = windowOf(profile, issuers.of(profile.name), order, { now, orderedAt: order.createdAt })
    return Effect.succeed(Result.isSuccess(window) ? of(window.success) : nothing)
  })
}

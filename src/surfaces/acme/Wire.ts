import type { Account } from "../../domain/Account.ts"
import { OrderNotReady } from "../../domain/AcmeError.ts"
import { kindName } from "../../domain/CertificateKind.ts"
import type { Challenge } from "../../domain/Challenge.ts"
import type { ChallengeId } from "../../domain/Id.ts"
import { baseName, DnsName, isWildcard } from "../../domain/Identifier.ts"
import { expiryOf, isLapsed, statusShown } from "../../domain/Order.ts"
import { problemOf } from "../../domain/Problem.ts"
import type { ProblemDocument } from "../../domain/ProblemDocument.ts"
import { rfc3339 } from "../../engine/Time.ts"
import type { AuthorizationView } from "../../operations/acme/Authorizations.ts"
import { impliedChallenges } from "../../operations/acme/Authorizations.ts"
import type { OrderView } from "../../operations/acme/Orders.ts"
import type { Wish } from "../../operations/acme/Validity.ts"
import { certificateKinds } from "../../settings/CertificateKinds.ts"
import type { Endpoint } from "./Endpoint.ts"

/* The objects that clients get. JSON has no member for a value that is `undefined`, and no member is ever null. */

/** Returns the object of an account (RFC 8555 section 7.1.2). */
export const accountObject = (endpoint: Endpoint, account: Account) => ({
  status: account.status,
  ...(account.contact.length === 0 ? {} : { contact: account.contact }),
  ...(endpoint.profile.meta.terms_of_service !== "" && account.termsOfServiceAgreed === true
    ? { termsOfServiceAgreed: true }
    : {}),
  orders: endpoint.orders(account.id)
})

/**
 * Returns the error of an order. No row stores the error of an order that expired because it was not finalized in time,
 * so this function makes that error.
 */
const errorOf = (order: OrderView, validity: number, now: number): ProblemDocument | undefined =>
  order.error === undefined && isLapsed(order, validity, now)
    ? problemOf(new OrderNotReady({ expiredAt: expiryOf(order, validity) }))
    : order.error

/**
 * Returns the object of an order (RFC 8555 section 7.1.3). Its dates are those of the certificate, not the requested
 * dates.
 */
export const orderObject = (endpoint: Endpoint, order: OrderView, { notAfter, notBefore }: Wish, now: number) => {
  const validity = endpoint.profile.order.validity_seconds
  const status = statusShown(order, validity, now)
  return {
    status,
    expires: rfc3339(expiryOf(order, validity)),
    identifiers: order.identifiers,
    notBefore: notBefore === undefined ? undefined : rfc3339(notBefore),
    notAfter: notAfter === undefined ? undefined : rfc3339(notAfter),
    error: errorOf(order, validity, now),
    authorizations: order.authorizationIds.map(endpoint.authorization),
    finalize: endpoint.finalize(order.id),
    certificate: status === "valid" ? endpoint.certificate(order.id) : undefined,
    replaces: order.replaces,
    profile: certificateKinds(endpoint.profile).isOffered ? kindName(order.kind) : undefined
  }
}

/** Returns the object of a challenge (RFC 8555 section 8). */
export const challengeObject = (endpoint: Endpoint, challenge: Omit<Challenge, "authzId"> & { id: ChallengeId }) => ({
  type: challenge.type,
  url: endpoint.challenge(challenge.id),
  status: challenge.status,
  token: challenge.token,
  validated: challenge.validatedAt === undefined ? undefined : rfc3339(challenge.validatedAt),
  error: challenge.error
})

/**
 * Returns the challenges to show. After an authorization is decided, only the challenge that decided it is shown,
 * because untried challenges are no longer useful.
 */
const challengesShown = ({ profile }: Endpoint, view: AuthorizationView): AuthorizationView["challenges"] => {
  const { challenges, status } = view
  return status === "valid" || status === "invalid"
    ? [...challenges.filter((challenge) => challenge.status === status), ...impliedChallenges(profile, view)]
    : challenges
}

/** Returns the object of an authorization (RFC 8555 section 7.1.4). For a wildcard, the identifier is the base name. */
export const authorizationObject = (endpoint: Endpoint, view: AuthorizationView) => {
  const name = DnsName.make(view.identifier.value, { disableChecks: true })
  return {
    identifier: { type: view.identifier.type, value: baseName(name) },
    status: view.status,
    expires: rfc3339(expiryOf(view, endpoint.profile.order.validity_seconds)),
    challenges: challengesShown(endpoint, view).map((challenge) => challengeObject(endpoint, challenge)),
    ...(isWildcard(name) ? { wildcard: true } : {})
  }
}

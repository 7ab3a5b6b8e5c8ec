import { reasonShown } from "../../domain/RevocationReason.ts"
import type { orderDetailObject } from "../../operations/operator/Objects.ts"
import { renderDetail } from "./Detail.ts"
import { escaped } from "./Escaped.ts"
import type { Rendered } from "./Rendered.ts"
import { stacked } from "./Rendered.ts"
import { clientText } from "./Text.ts"

type OrderObject = ReturnType<typeof orderDetailObject>

const names = (identifiers: ReadonlyArray<{ readonly value: string }>) => identifiers.map(({ value }) => value)

/** Renders `order show` for people, without PEM and URLs. The reason of a failure comes last. */
export const renderOrder = (order: OrderObject): Rendered => {
  const head = renderDetail({
    id: order.id,
    profile: order.profile,
    kind: order.kind,
    account: order.accountId,
    status: order.revokedAt === undefined ? order.status : `${order.status}, revoked`,
    names: names(order.identifiers),
    created: order.createdAt,
    from: clientText(order.createdIp, order.createdPtr),
    expires: order.expires,
    serial: order.certSerial,
    certificateExpires: order.certNotAfter,
    revoked: order.revokedAt,
    reason: order.revocationReason === undefined ? undefined : reasonShown(order.revocationReason),
    notGranted: order.notGranted,
    replaces: order.replaces,
    replacedBy: order.replacedBy
  })
  const authorizations = order.authorizations.flatMap(({ challenges, identifier, provedBy, status, wildcard }) => [
    `  ${wildcard === true ? "*." : ""}${identifier.value}: ${status}${
      provedBy === undefined ? "" : ", by the credential of the account"
    }`,
    ...challenges.flatMap(({ cause, error, status, type }) => [
      `    ${type}: ${status}${error === undefined ? "" : ` (${escaped(error.detail)})`}`,
      ...(cause === undefined ? [] : [`      cause: ${escaped(cause.reason)}, ${escaped(cause.detail)}`])
    ])
  ])
  const jobs = order.jobs.map(({ attempts, id, kind, lastError, maxAttempts, status }) =>
    `  ${kind} ${id}: ${status}, attempt ${attempts} of ${maxAttempts}${
      lastError === undefined ? "" : ` (${escaped(lastError)})`
    }`
  )
  const { error, explanation } = order
  return stacked([
    head,
    ...(authorizations.length === 0 ? [] : ["", "authorizations", ...authorizations]),
    ...(jobs.length === 0 ? [] : ["", "jobs", ...jobs]),
    ...(error === undefined ? [] : ["", `error  ${escaped(error.detail)}`]),
    ...(explanation === undefined ? [] : ["", explanation.summary, explanation.nextStep]),
    ...(explanation?.requestId === undefined ? [] : [`Its log lines have request_id=${explanation.requestId}.`])
  ], "\n")
}

import { declarationOf } from "../../../domain/words/AttentionCause.ts"
import { member, timeMember } from "../../../engine/Members.ts"
import { rfc3339 } from "../../../engine/Time.ts"
import type { NeedsAttention } from "../Attention.ts"

/** Returns the list of concerns in the form of the API. */
export const attentionObject = ({ at, concerns, unread, wellSince }: NeedsAttention) => ({
  items: concerns.map(({ cause, count, effect, error, severity, since, title, way }) => ({
    cause,
    severity,
    title,
    effect,
    ...member("count", count),
    ...timeMember("since", since),
    ...member("error", error),
    page: way.path,
    pageTitle: way.label,
    command: `acme-svc ${way.command}`,
    runbook: declarationOf(cause).runbook
  })),
  unread,
  asOf: rfc3339(at),
  ...timeMember("wellSince", wellSince)
})

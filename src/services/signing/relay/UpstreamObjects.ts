import * as Effect from "effect/Effect"
import { rfc3339 } from "../../../engine/Time.ts"
import type { UpstreamChallenge } from "./Strategy.ts"
import type { Members, UpstreamAnswer } from "./UpstreamAnswer.ts"
import { UpstreamRefused, UpstreamUnavailable } from "./UpstreamFailed.ts"

/* Reads an upstream's orders and authorizations, whose content may be anything. */

/** Returns the failure for an answer that cannot be understood. The next answer may be correct. */
export const broken = (what: string) =>
  new UpstreamUnavailable({ detail: `the upstream answers with ${what}`, status: undefined })

/** Returns the failure for an upstream that cannot be trusted. */
export const untrusted = (detail: string) => new UpstreamRefused({ detail, status: undefined, type: "untrusted" })

/** Returns the JSON object in an answer. */
export const objectOf = (
  { json }: Pick<UpstreamAnswer, "json">,
  what: string
): Effect.Effect<Members, UpstreamUnavailable> =>
  json === undefined ? broken(`${what} that is no JSON object`) : Effect.succeed(json)

/** Returns a member as text. Returns an empty text if the member is not text. */
export const textIn = (members: Members, name: string): string => {
  const value = members[name]
  return typeof value === "string" ? value : ""
}

/** Returns a member as a list. Returns an empty list if the member is not a list. */
export const listIn = (members: Members, name: string): ReadonlyArray<unknown> => {
  const value = members[name]
  return Array.isArray(value) ? value as ReadonlyArray<unknown> : []
}

const token = /^[\w-]{1,512}$/

/** Returns the challenges of an authorization, including challenges of unknown types and challenges without a token. */
export const challengesIn = (members: Members): ReadonlyArray<UpstreamChallenge & { readonly error: unknown }> =>
  listIn(members, "challenges").flatMap((one) => {
    if (typeof one !== "object" || one === null) return []
    const challenge = one as Members
    const text = textIn(challenge, "token")
    return [{
      type: textIn(challenge, "type"),
      url: challenge["url"],
      token: token.test(text) ? text : undefined,
      status: textIn(challenge, "status"),
      error: challenge["error"]
    }]
  })

/** Returns the identifier of an authorization in lower case. */
export const nameIn = (members: Members): { readonly name: string; readonly isWildcard: boolean } => ({
  name: textIn((members["identifier"] ?? {}) as Members, "value").toLowerCase(),
  isWildcard: members["wildcard"] === true
})

/** The dates that the client requested, in epoch seconds. */
export interface WantedValidity {
  readonly notBefore: number | undefined
  readonly notAfter: number | undefined
}

/** Returns the requested dates in the form of newOrder (RFC 8555 section 7.4). */
export const datesOf = ({ notAfter, notBefore }: WantedValidity) => ({
  ...(notBefore === undefined ? {} : { notBefore: rfc3339(notBefore) }),
  ...(notAfter === undefined ? {} : { notAfter: rfc3339(notAfter) })
})

/**
 * Returns whether an order has the requested dates. Only dates that the order shows are compared. Some upstreams show
 * dates that were not requested.
 */
export const hasDates = (members: Members, { notAfter, notBefore }: WantedValidity): boolean =>
  ([["notBefore", notBefore], ["notAfter", notAfter]] as const).every(([member, wanted]) => {
    const shown = Math.floor(Date.parse(textIn(members, member)) / 1000)
    return wanted === undefined || Number.isNaN(shown) || shown === wanted
  })

/**
 * Returns whether an order belongs to the upstream that has this newOrder URL. The profile may have had another
 * upstream before.
 */
export const isOfUpstream = (orderUrl: string, newOrder: string): boolean =>
  URL.canParse(orderUrl) && new URL(orderUrl).origin === new URL(newOrder).origin

/** Returns names in the form of newOrder. */
export const identifiersOf = (names: ReadonlyArray<string>) => names.map((value) => ({ type: "dns", value }))

/** Returns whether an order is for exactly these names. */
export const hasNames = (members: Members, names: ReadonlyArray<string>): boolean => {
  const values = listIn(members, "identifiers")
    .map((one) => textIn((one ?? {}) as Members, "value").toLowerCase()).sort()
  return values.length === names.length && [...names].sort().every((name, index) => name === values[index])
}

import * as Brand from "effect/Brand"

/** Record ids are lower-case hyphenated UUIDs. New ids have version 7; converted rows may have version 4. */
export type AccountId = string & Brand.Brand<"AccountId">
export const AccountId = Brand.nominal<AccountId>()
export type OrderId = string & Brand.Brand<"OrderId">
export const OrderId = Brand.nominal<OrderId>()
export type AuthorizationId = string & Brand.Brand<"AuthorizationId">
export const AuthorizationId = Brand.nominal<AuthorizationId>()
export type ChallengeId = string & Brand.Brand<"ChallengeId">
export const ChallengeId = Brand.nominal<ChallengeId>()
export type CampaignId = string & Brand.Brand<"CampaignId">
export const CampaignId = Brand.nominal<CampaignId>()

const form = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Returns a lower bound of all ids that are made in this epoch second or later, because ids of version 7 begin with the
 * time.
 */
export const firstIdAt = (seconds: number): string => {
  const time = Math.max(0, seconds * 1000).toString(16).padStart(12, "0")
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`
}

// An id is made at nearly the same time as its row, but not at the same time.
const mostSecondsApart = 3600

/**
 * Returns a lower bound of the ids of orders that were created in this epoch second or later. Use it besides a condition
 * on their time, so that the engine reads a range of an index on the id.
 */
export const idBefore = (seconds: number): OrderId => OrderId(firstIdAt(seconds - mostSecondsApart))

/** Returns the epoch second at which an id of version 7 was made. An id of another version has no time. */
export const madeAt = (id: string): number | undefined =>
  id.charAt(14) === "7" ? Math.floor(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) / 1000) : undefined

/** Returns whether a text is an id in the form that this service writes. Upper case and other spellings are refused. */
export const isId = (text: string): boolean => form.test(text)

import * as Effect from "effect/Effect"
import { RateLimited } from "../../domain/AcmeError.ts"
import type { Reached } from "../../domain/Limit.ts"
import type { ClientFacts } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { count } from "../../domain/words/Series.ts"
import { peerOf } from "../../engine/net/Peer.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import * as eabKeys from "../../store/eab/EabKeys.ts"
import * as limits from "../../store/LimitRows.ts"
import type { Caller } from "../Caller.ts"

/**
 * The Retry-After, in seconds, if there are too many pending authorizations. The client itself decides when its pending
 * authorizations end.
 */
const pendingRetrySeconds = 60

/** Returns the value of `created_network` for a new account. */
export const networkOf = ({ ip }: ClientFacts): string | undefined => ip === undefined ? undefined : peerOf(ip).network

/**
 * Describes a limit over a window of time that has been reached. A request may succeed again when the oldest counted
 * row leaves the window.
 */
const overWindow = (
  limit: Reached["limit"],
  { most, now, oldest, windowSeconds }: {
    readonly most: number
    readonly now: number
    readonly oldest: number
    readonly windowSeconds: number
  }
): Reached => ({ limit, most, windowSeconds, retryAfter: Math.max(1, oldest + windowSeconds - now) })

/** Returns the limit that a new account would exceed, if any. */
export const ofNewAccount = Effect.fnUntraced(function*(profile: ProfileConfig, client: ClientFacts, now: number) {
  const { accounts_per_network: most, window_seconds } = profile.limits
  const network = networkOf(client)
  if (most === 0 || network === undefined) return undefined
  const oldest = yield* limits.accountBut(most - 1, { profile: profile.name, network, since: now - window_seconds })
  return oldest === undefined
    ? undefined
    : overWindow("accounts_per_network", { most, now, oldest, windowSeconds: window_seconds })
})

/**
 * Returns the limit that another order to replace this certificate would exceed, if any. Orders that replace a
 * certificate do not count towards any other limit.
 */
const ofReplacement = Effect.fnUntraced(function*({ accountId, profile }: Caller, replaces: string, now: number) {
  const { orders_per_replacement: most, window_seconds: windowSeconds } = profile.limits
  const oldest = yield* limits.replacementBut(most - 1, { accountId, replaces, since: now - windowSeconds })
  return oldest === undefined ? undefined : overWindow("orders_per_replacement", { most, now, oldest, windowSeconds })
})

/**
 * Returns the first limit that a new order with this number of names would exceed, if any. `replaces` is the
 * certificate that the order replaces. The caller must have locked the account in this transaction.
 */
export const ofNewOrder = Effect.fnUntraced(function*(
  caller: Caller,
  { names, now, replaces }: { readonly names: number; readonly now: number; readonly replaces: string | undefined }
) {
  if (replaces !== undefined) return yield* ofReplacement(caller, replaces, now)
  const { accountId, profile } = caller
  const { names_per_account, orders_per_account, pending_authorizations_per_account, window_seconds } = profile.limits
  const since = now - window_seconds
  const windowed = [
    ["orders_per_account", "orders", orders_per_account, 1],
    ["names_per_account", "names", names_per_account, names]
  ] as const
  for (const [limit, rows, most, more] of windowed) {
    if (most === 0) continue
    const oldest = yield* limits.orderBut(most - more, { rows, accountId, since })
    if (oldest !== undefined) return overWindow(limit, { most, now, oldest, windowSeconds: window_seconds })
  }
  const most = pending_authorizations_per_account
  if (most === 0) return undefined
  const live = { accountId, now, since: now - profile.order.validity_seconds }
  return (yield* limits.pendingBut(most - names, live)) === undefined
    ? undefined
    : { limit: "pending_authorizations_per_account", most, retryAfter: pendingRetrySeconds } satisfies Reached
})

const daySeconds = 86_400

/**
 * Returns the limit of the caller's credential that a new order would exceed, if any. Orders of all accounts of the
 * credential count, except orders that replace a certificate. Until the transaction ends, no other such order is placed
 * with the credential. This must be called before the account is locked.
 */
export const ofCredential = Effect.fnUntraced(function*({ eabKid: kid = "" }: Caller, most: number, now: number) {
  yield* eabKeys.holdAlone(kid)
  const oldest = yield* limits.credentialBut(most - 1, { kid, since: now - daySeconds })
  return oldest === undefined
    ? undefined
    : overWindow("orders_per_day", { most, now, oldest, windowSeconds: daySeconds })
})

/** Returns how many orders of the last 24 hours count towards the limit of a credential. */
export const ordersOfDay = (kid: string, now: number) => limits.credentialOrderCount({ kid, since: now - daySeconds })

/**
 * Returns the highest number of names that one order may have. A larger order would exceed a limit, however long the
 * client waits.
 */
export const mostNames = ({ limits, order }: ProfileConfig): number =>
  // A limit of 0 means that there is none.
  Math.min(
    order.max_identifiers,
    limits.names_per_account || Infinity,
    limits.pending_authorizations_per_account || Infinity
  )

/** Returns whether `[limits]` sets any limit on the orders of an account. */
export const boundsOrders = ({ limits }: ProfileConfig): boolean =>
  limits.orders_per_account > 0 || limits.names_per_account > 0 || limits.pending_authorizations_per_account > 0

/**
 * Refuses a request that exceeds a limit. Counts and logs the refusal. A replayed request is neither counted nor
 * logged.
 */
export const refuse = (
  profile: string,
  reached: Reached,
  about: { readonly accountId?: string; readonly client: ClientFacts }
): Effect.Effect<never, RateLimited | StorageFailed, Database> =>
  Effect.gen(function*() {
    const { limit, retryAfter } = reached
    yield* count("acme_svc_rate_limited_total", { profile, limit })
    yield* emit("request_rate_limited", { limit, account_id: about.accountId, address: about.client.ip })
    return yield* new RateLimited({ ...reached, again: (yield* currentSeconds) + retryAfter })
  })

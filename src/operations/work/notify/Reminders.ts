import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { sha256 } from "../../../crypto/Digest.ts"
import { mailAddressesOf } from "../../../domain/Account.ts"
import { AccountId, OrderId } from "../../../domain/Id.ts"
import type { JobFailure } from "../../../domain/JobFailure.ts"
import { contactEvent } from "../../../domain/Notification.ts"
import type { PayloadOf } from "../../../domain/words/JobKind.ts"
import { emit } from "../../../domain/words/Log.ts"
import { count } from "../../../domain/words/Series.ts"
import { clocks } from "../../../engine/queue/Clocks.ts"
import type { Outcome } from "../../../engine/queue/Outcome.ts"
import { DatabaseFailed, Reschedule, Retry } from "../../../engine/queue/Outcome.ts"
import type { Database, StorageFailed } from "../../../engine/sql/Database.ts"
import { aside, transaction } from "../../../engine/sql/Database.ts"
import { inBatches } from "../../../engine/sql/Pages.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import type { Notifier } from "../../../services/notify/Notifier.ts"
import type { ContactLetter } from "../../../services/notify/Notifier.ts"
import { write } from "../../../services/notify/Notifier.ts"
import type { ProfileConfig } from "../../../settings/AppConfig.ts"
import * as accounts from "../../../store/AccountRows.ts"
import { mailed } from "../../../store/campaigns/CampaignCertificateRows.ts"
import type { Campaign } from "../../../store/campaigns/CampaignRows.ts"
import * as reminders from "../../../store/notify/ReminderRows.ts"
import type { Place } from "../../../store/orders/ExpiringRows.ts"
import { batch, judged } from "../../ExpiringWindow.ts"
import * as expiring from "../ExpiringDigest.ts"
import { certificatesOf } from "./ExpiringFields.ts"

/* Sends mail to the contacts of accounts (docs/contribute/decisions/notifications.md, "Expiring certificates"). */

const daySeconds = 86_400
const weekSeconds = 7 * daySeconds

/**
 * The maximum number of reminders that are sent to an address in a day. The limit exists because anyone can name any
 * address as the contact of an account.
 */
const mostPerAddress = 5

/** The highest number of certificates that one mail names. */
const mostNamed = 50

class Limited extends Data.TaggedError("Limited")<{ readonly mails: number }> {}

// The row can be found only by the address, because the account that named the address may be gone.
const keyOf = (address: string): string => sha256(address.toLowerCase())

type Profile = Pick<ProfileConfig, "name"> & { readonly notify: Pick<ProfileConfig["notify"], "expiry"> }

interface Mails {
  readonly queued: number
  readonly limited: number
}

/** What a mail says besides the certificates, and the writes that belong to it. */
interface More {
  readonly about?: Pick<ContactLetter["fields"], "campaign_reason" | "campaign_url">
  /** Gets the orders that need no mail any more: the mail names them, or the account has no contact. */
  readonly during?: (orders: ReadonlyArray<OrderId>) => Effect.Effect<void, StorageFailed, Database>
}

/**
 * Queues mail to the contacts of one account. If every contact has already been sent enough mail today, nothing is
 * queued.
 */
const tell = Effect.fnUntraced(function*(
  profile: string,
  accountId: AccountId,
  orders: ReadonlyArray<OrderId>,
  now: number,
  { about = {}, during = () => Effect.void }: More = {}
): Effect.fn.Return<Mails, StorageFailed, Database | Notifier> {
  const account = yield* accounts.find(profile, accountId)
  const addresses = mailAddressesOf(account?.contact ?? []).map((address) => ({ address, key: keyOf(address) }))
  if (addresses.length === 0) {
    yield* transaction(during(orders))
    return { queued: 0, limited: 0 }
  }
  const queued = transaction(Effect.gen(function*() {
    const taken = yield* reminders.take(orders, now - weekSeconds, now)
    const told = orders.filter((id) => taken.has(id))
    if (told.length === 0) return { queued: 0, limited: 0 }
    let mails = 0
    for (const { address, key } of addresses) {
      if (!(yield* reminders.count({ key, most: mostPerAddress, windowSeconds: daySeconds, now }))) continue
      yield* write({
        event: contactEvent,
        scope: profile,
        fields: {
          account_id: accountId,
          recipient: address,
          orders: told.slice(0, mostNamed),
          total: told.length,
          ...about
        }
      })
      mails++
    }
    yield* during(told)
    const limited = addresses.length - mails
    return mails === 0 ? yield* new Limited({ mails: limited }) : { queued: mails, limited }
  }))
  return yield* Effect.catchTag(queued, "Limited", ({ mails }) => Effect.succeed({ queued: 0, limited: mails }))
})

const byAccount = (
  places: ReadonlyArray<Pick<Place, "accountId" | "id">>
): ReadonlyMap<AccountId, ReadonlyArray<OrderId>> => {
  const found = new Map<AccountId, Array<OrderId>>()
  for (const { accountId, id } of places) {
    const orders = found.get(accountId)
    if (orders === undefined) found.set(accountId, [id])
    else orders.push(id)
  }
  return found
}

/**
 * Queues mail about the certificates of a page. A certificate that was replaced is left out, and so is a certificate
 * about which mail was sent within a week.
 */
const tellOf = Effect.fnUntraced(function*(profile: string, open: ReadonlyArray<Place>, now: number) {
  const recent = yield* aside(reminders.recent(open.map(({ id }) => id), now - weekSeconds))
  const mails = { queued: 0, limited: 0 }
  for (const [accountId, orders] of byAccount(open.filter(({ id }) => !recent.has(id)))) {
    const { limited, queued } = yield* tell(profile, accountId, orders, now)
    mails.queued += queued
    mails.limited += limited
    yield* Effect.yieldNow
  }
  return mails
})

/**
 * Queues mail to the contacts of the accounts whose clients never ask for the renewal information of a campaign. Mail
 * about a certificate is queued once, together with the row that says so, and not within a week of another mail about
 * it.
 */
export const remindOfCampaign = Effect.fnUntraced(function*(
  { explanationUrl, id, reason }: Pick<Campaign, "explanationUrl" | "id" | "reason">,
  silent: ReadonlyArray<Pick<Place, "accountId" | "id" | "profile">>,
  now: number
) {
  const mails = { count: 0, limited: 0 }
  const about = { campaign_reason: reason, campaign_url: explanationUrl }
  const during = (orders: ReadonlyArray<OrderId>) => mailed(id, orders, now)
  for (const profile of new Set(silent.map((one) => one.profile))) {
    for (const [accountId, orders] of byAccount(silent.filter((one) => one.profile === profile))) {
      const { limited, queued } = yield* tell(profile, accountId, orders, now, { about, during })
      mails.count += queued
      mails.limited += limited
      yield* Effect.yieldNow
    }
  }
  if (mails.count + mails.limited > 0) yield* emit("campaign_reminders_queued", { campaign_id: id, ...mails })
})

const sweep = Effect.fnUntraced(function*(now: number) {
  yield* inBatches(1000, (limit) => reminders.sweep(now - weekSeconds, limit))
  const windows = [
    { from: 0, upTo: now - daySeconds },
    // A window that begins further in the future than a window lasts was made with a wrong clock.
    { from: now + daySeconds, upTo: Number.MAX_SAFE_INTEGER }
  ]
  for (const range of windows) yield* inBatches(1000, (limit) => reminders.sweepAddresses({ ...range, limit }))
})

/**
 * Runs the daily check of a profile. A separate transaction for each account writes its mails, together with the rows
 * that prevent the next check from sending them again. So it does not matter how this check ends.
 */
export const look = (
  profile: Profile
): Effect.Effect<Outcome<Database, JobFailure>, StorageFailed, Database | Notifier> =>
  Effect.gen(function*() {
    const { name, notify: { expiry } } = profile
    const now = yield* currentSeconds
    yield* sweep((yield* clocks).earlier)
    const mails = { count: 0, limited: 0 }
    const window = { profile: name, now, until: now + expiry.lead_days * daySeconds }
    yield* Stream.runForEach(judged(window, batch, true), ({ gone, page }) =>
      Effect.map(
        tellOf(
          name,
          page.filter((_, number) => !gone.has(number)),
          now
        ),
        ({ limited, queued }) => {
          mails.count += queued
          mails.limited += limited
        }
      ))
    if (mails.count + mails.limited > 0) yield* emit("notify_expiry_reminders_queued", { profile: name, ...mails })
    yield* count("acme_svc_notify_expiry_reminders_total", { profile: name, outcome: "queued" }, mails.count)
    yield* count("acme_svc_notify_expiry_reminders_total", { profile: name, outcome: "limited" }, mails.limited)
    return Reschedule(now + daySeconds)
  }).pipe(
    Effect.catch(({ message }) =>
      Effect.as(
        emit("notify_expiry_reminders_failed", { profile: profile.name, error: message }),
        Retry(new DatabaseFailed({ detail: message }), { atMost: daySeconds })
      )
    )
  )

const isText = (value: unknown): value is string => typeof value === "string"

/**
 * Returns the present content of a queued mail. Returns `undefined` if there is nothing left to report: the
 * certificates were replaced or revoked or have expired, or the account is no longer valid or no longer has this
 * contact.
 */
export const current = Effect.fnUntraced(function*({ fields, scope }: PayloadOf<"notify_deliver">) {
  const { account_id, orders, recipient, total, ...common } = fields
  const account = isText(account_id) ? yield* accounts.find(scope, AccountId(account_id)) : undefined
  if (account?.status !== "valid" || !isText(recipient)) return undefined
  if (!mailAddressesOf(account.contact).some((address) => keyOf(address) === keyOf(recipient))) return undefined
  const named = Array.isArray(orders) ? orders.filter(isText).map((id) => OrderId(id)) : []
  const open = yield* aside(expiring.stillOpen(named))
  if (open.length === 0) return undefined
  const unnamed = typeof total === "number" ? Math.max(0, total - named.length) : 0
  return { ...common, account_id, recipient, total: open.length + unnamed, certificates: certificatesOf(open) }
})

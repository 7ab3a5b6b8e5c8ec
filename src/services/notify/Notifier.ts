import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Entropy } from "../../crypto/Entropy.ts"
import type { MessageKind, NotificationEvent, Occurrence, Payload, Scope } from "../../domain/Notification.ts"
import { contactEvent, onlyEntry, payloadOf, recipientsOf } from "../../domain/Notification.ts"
import { enqueueJob } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { shareOf } from "../../engine/queue/Job.ts"
import { Queue } from "../../engine/queue/Queue.ts"
import type { StorageFailed } from "../../engine/sql/Database.ts"
import type { Database } from "../../engine/sql/Database.ts"
import { afterCommit, transaction } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { Config } from "../../settings/AppConfig.ts"
import type { Route } from "./NotifyRoutes.ts"
import { isOfScope, routesOf, sectionsOf } from "./NotifyRoutes.ts"

/** A delivery is given up this number of seconds (one day) after its event. */
const patienceSeconds = 86_400

type Routes = ReadonlyMap<string, { readonly routes: ReadonlyArray<Route>; readonly to: ReadonlyArray<string> }>

const routed = (config: Config): Routes =>
  new Map([...sectionsOf(config)].flatMap(([scope, section]) => {
    const routes = routesOf(section)
    return routes.length === 0 ? [] : [[scope, { routes, to: section.email.to }] as const]
  }))

/** Returns the entries to which an occurrence is delivered. Mail without a recipient is left out. */
const wanting = (known: Routes, occurrence: Occurrence): ReadonlyArray<Route> => {
  const section = known.get(occurrence.scope)
  if (section === undefined || !isOfScope(occurrence.event, occurrence.scope)) return []
  return section.routes.filter(({ backend, events }) =>
    events.has(occurrence.event) &&
    (backend !== "email" || recipientsOf({ ...occurrence.fields }, section.to).length > 0)
  )
}

/**
 * Returns the share of a delivery. The accounts take turns at a receiver, so that many events about one account do not
 * delay the events about others.
 */
const receiverShareOf = (
  scope: Scope,
  { backend, entry }: Pick<Route, "backend" | "entry">,
  { account_id }: Payload
): string => shareOf(scope, `${backend}/${entry}`, typeof account_id === "string" ? account_id : "-")

/** A mail to a contact of an account: its recipient, and the orders that the mail is about. */
export interface ContactLetter {
  readonly event: typeof contactEvent
  readonly scope: Scope
  readonly fields: {
    readonly account_id: string
    readonly recipient: string
    readonly orders: ReadonlyArray<string>
    readonly total: number
    readonly campaign_reason?: string | undefined
    readonly campaign_url?: string | undefined
  }
}

/** Queues notifications to operators and programs (docs/contribute/decisions/notifications.md). */
export class Notifier extends Context.Service<Notifier, {
  /** Writes one job for each entry that wants the event, in the caller's transaction. */
  readonly queue: (occurrence: Occurrence) => Effect.Effect<void, StorageFailed>
  /**
   * Writes the job for one mail to a contact, in the caller's transaction. The content of the mail is read only when
   * the mail is sent.
   */
  readonly write: (letter: ContactLetter) => Effect.Effect<void, StorageFailed>
  /** Returns whether any entry of the scope wants the event. */
  readonly isWanted: (event: NotificationEvent, scope: Scope) => boolean
}>()("acme/services/notify/Notifier") {
  /** Makes the service. It calls `config` each time it is used, because a reload changes the configuration. */
  static readonly layer = (config: () => Config): Layer.Layer<Notifier, never, Queue | Entropy> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const queue = yield* Queue
        const { uuid } = yield* Entropy
        let kept: { readonly config: Config; readonly routes: Routes } | undefined
        const routes = (): Routes => {
          const now = config()
          if (kept?.config !== now) kept = { config: now, routes: routed(now) }
          return kept.routes
        }
        const insert = Effect.fnUntraced(function*(
          { event, scope }: { readonly event: MessageKind; readonly scope: Scope },
          { backend, entry }: Pick<Route, "backend" | "entry">,
          fields: Payload,
          share = receiverShareOf(scope, { backend, entry }, fields)
        ) {
          const { at, delivery_id } = fields
          const job = enqueueJob({
            kind: "notify_deliver",
            dedupKey: `${delivery_id}/${backend}/${entry}`,
            share,
            payload: { scope, backend, entry, event, fields },
            deadline: at + patienceSeconds
          })
          yield* Effect.provideService(job, Queue, queue)
          yield* afterCommit(emit("notify_queued", { profile: scope, backend, entry, hook: event, delivery_id }))
        })
        const mail = { backend: "email", entry: onlyEntry } as const
        return Notifier.of({
          // Mails to contacts have a share of their own, so that many of them do not delay mails to operators.
          write: Effect.fnUntraced(function*(letter) {
            const fields = payloadOf(letter, yield* currentSeconds, yield* uuid)
            yield* insert(letter, mail, fields, shareOf(letter.scope, `email/${contactEvent}`))
          }),
          isWanted: (event, scope) => routes().get(scope)?.routes.some(({ events }) => events.has(event)) ?? false,
          queue: Effect.fnUntraced(function*(occurrence) {
            const wanted = wanting(routes(), occurrence)
            if (wanted.length === 0) return
            const fields = payloadOf(occurrence, yield* currentSeconds, yield* uuid)
            for (const route of wanted) yield* insert(occurrence, route, fields)
          })
        })
      })
    )

  /** Notifies nobody. This layer is for programs in which no receivers are configured. */
  static readonly layerNone: Layer.Layer<Notifier> = Layer.succeed(this, {
    write: () => Effect.void,
    isWanted: () => false,
    queue: () => Effect.void
  })
}

/** Queues the notifications of an occurrence. Must run in the transaction of the change that is reported. */
export const notify = (occurrence: Occurrence): Effect.Effect<void, StorageFailed, Notifier> =>
  Notifier.use((notifier) => notifier.queue(occurrence))

/**
 * Queues a mail to a contact. Must run in the transaction that records the mail, so that the mail is not sent twice.
 */
export const write = (letter: ContactLetter): Effect.Effect<void, StorageFailed, Notifier> =>
  Notifier.use((notifier) => notifier.write(letter))

/**
 * Makes a change. If it changed anything, queues its notifications in the same transaction. If no entry wants the
 * event, the change runs without a transaction.
 */
export const telling = <A, E, R>(
  change: Effect.Effect<A | undefined, E, R>,
  occurrence: Occurrence
): Effect.Effect<A | undefined, E | StorageFailed, R | Database | Notifier> =>
  Notifier.use((notifier): Effect.Effect<A | undefined, E | StorageFailed, R | Database | Notifier> =>
    notifier.isWanted(occurrence.event, occurrence.scope)
      ? transaction(Effect.tap(change, (changed) => changed === undefined ? Effect.void : notify(occurrence)))
      : change
  )

/**
 * Runs an effect that reports an event for which no row is stored, if any entry wants the event. A failure is only
 * logged.
 */
export const whereWanted = <R>(
  event: NotificationEvent,
  scope: Scope,
  tell: Effect.Effect<void, StorageFailed, R>
): Effect.Effect<void, never, R | Notifier> =>
  Notifier.use((notifier) =>
    notifier.isWanted(event, scope)
      ? Effect.catch(tell, ({ message }) =>
        emit("notify_enqueue_failed", { profile: scope, hook: event, error: message }))
      : Effect.void
  )

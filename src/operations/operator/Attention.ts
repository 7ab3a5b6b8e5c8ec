import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import type { Busy } from "../../domain/OperatorError.ts"
import type { AttentionCause } from "../../domain/words/AttentionCause.ts"
import { attentionCauseNames } from "../../domain/words/AttentionCause.ts"
import { makeSharedReading } from "../../engine/SharedReading.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { currentAsker } from "../../engine/sql/ReaderSemaphore.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { Issuers } from "../../services/signing/Issuers.ts"
import type { Config } from "../../settings/AppConfig.ts"
import { receiversOf } from "../../settings/AuditTable.ts"
import { authorityConcerns } from "./attention/AuthorityConcerns.ts"
import { certificateConcerns, clientConcerns, renewalConcerns } from "./attention/CertificateConcerns.ts"
import type { Concern } from "./attention/Concern.ts"
import { diskConcerns } from "./attention/DiskConcerns.ts"
import { listenerConcerns } from "./attention/ListenerConcerns.ts"
import { databaseConcerns, processConcerns } from "./attention/ProcessConcerns.ts"
import { profileConcerns } from "./attention/ProfileConcerns.ts"
import { failureConcerns, queueConcerns } from "./attention/QueueConcerns.ts"
import { signInConcerns } from "./attention/SignInConcerns.ts"
import { trailConcerns } from "./attention/TrailConcerns.ts"
import { readForOperator } from "./OperatorReads.ts"

/* What needs the attention of operators, as one list for the panel, the API and the command line. */

/** The names of the sources of concerns. */
export const attentionSources = [
  "disk",
  "database",
  "processes",
  "authorities",
  "profiles",
  "listeners",
  "queue",
  "failures",
  "certificates",
  "renewals",
  "clients",
  "sign-ins",
  "audit"
] as const

/** One of {@link attentionSources}. */
export type AttentionSource = (typeof attentionSources)[number]

/** How long, in milliseconds, one source may take. */
const patienceMillis = 3000

type Source = Effect.Effect<ReadonlyArray<Concern>, Busy | StorageFailed, Database | Issuers>

const brief = (source: Source): Source => readForOperator(source, patienceMillis)

/** Returns the sources. Each is read by itself, so that one that takes too long does not hide the others. */
const sourcesOf = (config: Config): { readonly [S in AttentionSource]: Source } => ({
  disk: diskConcerns(config),
  database: databaseConcerns,
  processes: brief(processConcerns),
  authorities: brief(authorityConcerns(config)),
  profiles: brief(profileConcerns(config)),
  listeners: listenerConcerns(config),
  queue: brief(queueConcerns(config)),
  failures: brief(failureConcerns),
  certificates: brief(certificateConcerns),
  renewals: renewalConcerns,
  clients: brief(clientConcerns),
  "sign-ins": brief(signInConcerns),
  audit: brief(trailConcerns(receiversOf(config.audit)))
})

/** What needs attention at a time. Times are epoch seconds. */
export interface NeedsAttention {
  /** The concerns: alarms first, then by cause, then the oldest first. */
  readonly concerns: ReadonlyArray<Concern>
  /** The sources that could not be read. There may be concerns that only they know. */
  readonly unread: ReadonlyArray<AttentionSource>
  readonly at: number
  /** Since when this process has seen no concern, if there is none now. */
  readonly wellSince: number | undefined
}

const keptMillis = 10_000
const readAtOnce = 2

const rank = ({ cause, severity }: Concern): number =>
  (severity === "alarm" ? 0 : attentionCauseNames.length) + attentionCauseNames.indexOf(cause)

/** What only follows from an alarm. Beside the alarm, these causes would hide others. */
const consequences: { readonly [C in AttentionCause]?: ReadonlyArray<AttentionCause> } = {
  // A process that cannot write does not say that it is present.
  disk_full: ["acme_absent", "worker_absent", "process_gone", "loops_failing", "queue_stalled", "sweep_stopped"],
  database_read_only: [
    "acme_absent",
    "worker_absent",
    "process_gone",
    "loops_failing",
    "queue_stalled",
    "sweep_stopped"
  ],
  acme_absent: ["process_gone"],
  worker_absent: ["process_gone", "queue_stalled", "sweep_stopped"]
}

const withoutConsequences = (concerns: ReadonlyArray<Concern>): ReadonlyArray<Concern> => {
  const alarms = concerns.filter(({ severity }) => severity === "alarm")
  const hidden = new Set(alarms.flatMap(({ cause }) => consequences[cause] ?? []))
  return concerns.filter(({ cause }) => !hidden.has(cause))
}

const bySeverity = (one: Concern, other: Concern): number =>
  rank(one) - rank(other) || (one.since ?? Infinity) - (other.since ?? Infinity) || (one.title < other.title ? -1 : 1)

/** Tells what needs attention. The list is kept for some seconds, so that many viewers cost no more than one. */
export class Attention extends Context.Service<Attention, {
  readonly now: Effect.Effect<NeedsAttention>
}>()("acme/operations/Attention") {
  /** Provides the list for a configuration. */
  static readonly layer = (config: Config): Layer.Layer<Attention, never, Database | Issuers> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const well = yield* Ref.make<number | undefined>(undefined)
        const services = yield* Effect.context<Database | Issuers>()
        const sources = sourcesOf(config)
        const read = Effect.gen(function*() {
          const at = yield* currentSeconds
          const found = yield* Effect.forEach(
            attentionSources,
            (source) =>
              Effect.map(
                Effect.option(Effect.provideContext(sources[source], services)),
                (concerns) => [source, Option.getOrUndefined(concerns)] as const
              ),
            { concurrency: readAtOnce }
          )
          const concerns = withoutConsequences(found.flatMap(([, one = []]) => one)).toSorted(bySeverity)
          const unread = found.flatMap(([source, one]) => one === undefined ? [source] : [])
          const isWell = concerns.length === 0 && unread.length === 0
          const wellSince = yield* Ref.updateAndGet(well, (since) => isWell ? since ?? at : undefined)
          return { concerns, unread, at, wellSince }
        })
        const shared = yield* makeSharedReading(keptMillis, read)
        // All viewers wait for this reading, so it does not count in the share of the operator who asked first.
        return { now: Effect.provideService(shared, currentAsker, { host: "attention", network: "attention" }) }
      })
    )
}

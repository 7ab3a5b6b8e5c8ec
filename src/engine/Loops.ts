import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"

/** The declaration of one background loop. */
export interface LoopDeclaration {
  /**
   * Whether the program is useless without this loop. Only the failures of vital loops make a process unready or end
   * it.
   */
  readonly isVital: boolean
}

/** The background loops of the engine, by their names in records and metrics. A program adds its own loops. */
export const engineLoops = {
  job_claims: { isVital: true },
  // without this loop, requests themselves check the database
  job_ends_heard: { isVital: false },
  job_leases: { isVital: true },
  // without this loop, attempts that exceed their time keep their slots
  job_overdue: { isVital: true },
  job_periodic: { isVital: false },
  job_polls: { isVital: true },
  // without this loop, each pass that claims jobs does the same work
  job_times: { isVital: false },
  // without notifications, polls find the jobs
  job_wakes_heard: { isVital: false },
  // without this loop, requests and connections that exceed their time keep their places
  listener_sweep: { isVital: true },
  // without this loop, a listener keeps its present key and certificate
  tls_expiry: { isVital: false },
  trace_export: { isVital: false },
  worker_presence: { isVital: false }
} as const satisfies Readonly<Record<string, LoopDeclaration>>

/** How many failures in a row of a vital loop make its process unready, and how many end the process. */
export const bounds = { unready: 2, end: 8 } as const

/** How many milliseconds a run must last to count as healthy. After such a run, earlier failures no longer count. */
const wellAfterMillis = 10_000
const steadyAfterMillis = 60_000

const longestWaitMillis = 30_000

/**
 * One background loop. It exists as long as its scope is open. Times are milliseconds since the start of the process.
 */
export interface Watched {
  readonly loop: string
  readonly begun: (life: number) => void
  /**
   * Reports that the loop has failed. Returns how many milliseconds to wait before the loop runs again: 1, 2, 4 … 30
   * seconds.
   */
  readonly died: (life: number) => number
  readonly ended: () => void
}

/**
 * The state of the background loops of a process. It decides whether the process is ready, and whether the process must
 * end.
 */
export class Loops extends Context.Service<Loops, {
  readonly watch: (loop: string, { isVital }: LoopDeclaration) => Watched
  /** Returns the vital loops that keep failing. In a ready process there are none. */
  readonly failing: (life: number) => ReadonlyArray<string>
  /** Returns all loops that keep failing, whether they are vital or not. */
  readonly troubled: (life: number) => ReadonlyArray<string>
  /** Waits until a vital loop has failed too often in a row. Returns the name of that loop. */
  readonly givenUp: Effect.Effect<string>
}>()("acme/engine/Loops") {
  static readonly layer: Layer.Layer<Loops> = Layer.sync(this, () => make())
}

const make = (): Loops["Service"] => {
  const watched = new Set<Readonly<{ loop: string; isVital: boolean; isFailing: (life: number) => boolean }>>()
  const namesOf = (life: number, among: (one: { readonly isVital: boolean }) => boolean) => [
    ...new Set([...watched].filter((one) => among(one) && one.isFailing(life)).map(({ loop }) => loop))
  ]
  const over = Deferred.makeUnsafe<string>()
  return {
    watch: (loop, { isVital }) => {
      let deaths = 0
      let begunAt: number | undefined
      const isFailing = (life: number) =>
        deaths >= bounds.unready && (begunAt === undefined || life - begunAt < wellAfterMillis)
      const one = { loop, isVital, isFailing }
      watched.add(one)
      return {
        loop,
        begun: (life) => void (begunAt = life),
        died: (life) => {
          deaths = begunAt !== undefined && life - begunAt >= steadyAfterMillis ? 1 : deaths + 1
          begunAt = undefined
          if (isVital && deaths >= bounds.end) Deferred.doneUnsafe(over, Exit.succeed(loop))
          return Math.min(1000 * 2 ** (deaths - 1), longestWaitMillis)
        },
        ended: () => void watched.delete(one)
      }
    },
    failing: (life) => namesOf(life, ({ isVital }) => isVital),
    troubled: (life) => namesOf(life, () => true),
    givenUp: Deferred.await(over)
  }
}

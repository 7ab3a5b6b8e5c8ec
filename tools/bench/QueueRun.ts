import { Effect, Exit, Layer, ManagedRuntime, Redacted, Scope } from "effect"
import { randomUUID } from "node:crypto"
import { setTimeout as delay } from "node:timers/promises"
import { Entropy } from "../../src/crypto/Entropy.ts"
import { enqueueJob, handler, knownKinds } from "../../src/domain/words/JobKind.ts"
import { Loops } from "../../src/engine/Loops.ts"
import { Queue } from "../../src/engine/queue/Queue.ts"
import { start } from "../../src/engine/queue/Runner.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import type { Driver } from "../../src/engine/sql/Driver.ts"
import * as Postgres from "../../src/engine/sql/Postgres.ts"
import * as Sqlite from "../../src/engine/sql/Sqlite.ts"
import type { Percentiles } from "./Load.ts"
import { percentilesOf } from "./Load.ts"
import type { Synchronous } from "./Service.ts"

/* Runs the service's own queue in a separate process. The jobs do nothing, so that only the queue is measured. */

/** The options of a process that takes part in a measurement of the queue. */
export interface Part {
  /** A file, or the URL of a PostgreSQL database. */
  readonly where: string
  readonly synchronous: Synchronous
  /** Whether the process runs jobs, or only enqueues them. */
  readonly runs: boolean
  /** Whether the process gets notifications about jobs of other processes. */
  readonly hears: boolean
}

/** The result of one measuring period. */
export interface QueueWindow {
  readonly jobs: number
  readonly elapsedMs: number
  /** Milliseconds from the call of `enqueue` to the beginning of the work. */
  readonly begins: Percentiles
}

/** The defaults of `jobs.*`. */
export const tuning = {
  poll_interval_ms: 1000,
  max_concurrent: 8,
  lease_seconds: 300,
  retry_base_seconds: 5,
  retry_max_seconds: 3600
}

/** Returns the time in milliseconds, by a clock that all processes of the machine share. */
const now = (): number => performance.timeOrigin + performance.now()

const begun = new Map<string, number>()
const waiting = new Map<string, () => void>()

const work = handler<"local_ca_crl_regenerate", Database>({
  kind: "local_ca_crl_regenerate",
  budgetMillis: () => 10_000,
  run: ({ issuer }) =>
    Effect.sync(() => {
      begun.set(issuer, now())
      waiting.get(issuer)?.()
      waiting.delete(issuer)
      return { _tag: "Done" as const }
    }),
  abandon: () => Effect.void
})

const deaf = (driver: Driver): Driver => ({ ...driver, listen: undefined })

const layerOf = ({ hears, synchronous, where }: Part) => {
  const database = where.startsWith("postgres:")
    ? Postgres.layer({ url: Redacted.make(where), pool_max: 10, acquire_timeout_ms: 5000 })
    : Sqlite.layer({ path: where, synchronous })
  const heard = hears ? database : Layer.provide(Layer.effect(Database, Effect.map(Database, deaf)), database)
  return Queue.layer({ kinds: knownKinds, config: () => ({ jobs: { max_attempts: 5 } }) }).pipe(
    Layer.provideMerge(Layer.mergeAll(heard, Entropy.layer, Loops.layer))
  )
}

type Services = Layer.Success<ReturnType<typeof layerOf>>

let runtime: ManagedRuntime.ManagedRuntime<Services, unknown> | undefined
let scope: Scope.Closeable | undefined

const inService = <A, E>(self: Effect.Effect<A, E, Services>): Promise<A> => {
  if (runtime === undefined) throw new Error("no database is open")
  return runtime.runPromise(self)
}

const enqueue = (key: string) =>
  enqueueJob({ kind: "local_ca_crl_regenerate", dedupKey: key, payload: { issuer: key } })

/** Enqueues a job, waits for its work, and returns how long it took until the work began. */
const one = async (): Promise<number> => {
  const key = randomUUID()
  const done = new Promise<void>((resolve) => waiting.set(key, resolve))
  const asked = now()
  await inService(enqueue(key))
  await done
  const at = begun.get(key) ?? asked
  begun.delete(key)
  return at - asked
}

/** The functions that a queue process offers to the bench. */
export const queueRun = {
  open: async (part: Part): Promise<void> => {
    runtime = ManagedRuntime.make(layerOf(part))
    if (!part.runs) return void await inService(Effect.void)
    scope = await inService(Scope.make())
    await inService(Scope.provide(start({ ...tuning, owner: `bench:${process.pid}:${randomUUID()}` }, [work]), scope))
  },

  /** Enqueues and runs jobs, with `atOnce` of them in progress. When one job has run, the next one is enqueued. */
  run: async ({ atOnce, jobs, seconds }: {
    readonly atOnce: number
    readonly jobs?: number
    readonly seconds?: number
  }): Promise<QueueWindow> => {
    let left = jobs ?? Number.POSITIVE_INFINITY
    const started = performance.now()
    const end = started + (seconds ?? Number.POSITIVE_INFINITY) * 1000
    const begins: Array<number> = []
    await Promise.all(Array.from({ length: atOnce }, async () => {
      while (left-- > 0 && performance.now() < end) begins.push(await one())
    }))
    return { jobs: begins.length, elapsedMs: performance.now() - started, begins: percentilesOf(begins) }
  },

  /** Enqueues jobs for other processes at intervals. Returns the key of each job, and the time of its call. */
  send: async (jobs: number): Promise<ReadonlyArray<readonly [key: string, at: number]>> => {
    const asked: Array<readonly [string, number]> = []
    for (let index = 0; index < jobs; index++) {
      const key = randomUUID()
      asked.push([key, now()])
      await inService(enqueue(key))
      await delay(40 + 37 * index % 60) // The intervals are irregular, so that polls cannot coincide with them.
    }
    return asked
  },

  /** Waits until the work of the jobs with these keys has begun. Returns when it began. */
  begins: async (keys: ReadonlyArray<string>): Promise<ReadonlyArray<number>> => {
    for (const key of keys) {
      if (!begun.has(key)) await new Promise<void>((resolve) => waiting.set(key, resolve))
    }
    return keys.map((key) => begun.get(key) ?? 0)
  },

  close: async (): Promise<void> => {
    if (scope !== undefined) await inService(Scope.close(scope, Exit.void))
    await runtime?.dispose()
    runtime = undefined
    scope = undefined
  }
}

import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Scope } from "effect"
import { TestClock } from "effect/testing"
import { Entropy } from "../../src/crypto/Entropy.ts"
import { Loops } from "../../src/engine/Loops.ts"
import type { Web } from "../../src/engine/net/Web.ts"
import type { Database } from "../../src/engine/sql/Database.ts"
import type { Record } from "../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../src/engine/telemetry/EventLog.ts"
import type { Backend, TestDatabase } from "./Databases.ts"
import { useDatabase } from "./Databases.ts"
import { offline } from "./Offline.ts"

/*
 * The way to write tests that are effects. Every file has services of its own, and all files run their tests in the
 * same way.
 */

/**
 * The services that every test has: randomness that the name of the test seeds, the loops, and a network in which nobody
 * answers. Each test also has a log that keeps its records.
 */
export type Given = Entropy | Loops | Scope.Scope | Web

/** What the layer of a test's services may use: the name, the log records and the script of the test. */
export interface Making<S> {
  readonly name: string
  /** Receives every log record. */
  readonly records: Array<Record>
  /** The script of the running test. */
  readonly script: S | undefined
}

/** How the tests of a block run. `O` are the services from outside the test. */
export interface Manner<A, R, S, O> {
  /** Services in addition to those that every test has. */
  readonly layer?: (making: Making<S>) => Layer.Layer<R, unknown, O | Entropy | Loops | Web>
  /** The epoch second at which the test's clock begins. */
  readonly startsAt?: number
  /** Runs first in every test. The body of the test gets the result. */
  readonly first?: (script: S | undefined) => Effect.Effect<A, unknown, NoInfer<R | O> | Given>
  /** Runs a whole test, including the construction of its services. */
  readonly around?: (
    whole: Effect.Effect<void, unknown, O | Scope.Scope>,
    script: S | undefined
  ) => Effect.Effect<void, unknown, O | Scope.Scope>
}

/** The functions that {@link useTests} gives to a describe block or a file. */
export interface Tests<A, R, S> {
  /** Every log record of the running test. */
  readonly records: Array<Record>
  /** A test. Its name seeds its randomness, and `script` configures it. */
  readonly test: (name: string, body: (given: A) => Effect.Effect<void, unknown, R | Given>, script?: S) => void
}

/** Runs a test on the system's clock, for waits outside the process. */
export const onSystemClock = <A, E, R>(whole: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  TestClock.withLive(whole)

const testsIn = <A, R, S, O>(
  place: (whole: Effect.Effect<void, unknown, O | Scope.Scope>) => Effect.Effect<void, unknown, Scope.Scope>,
  { around = (whole) => whole, first, layer, startsAt = 0 }: Manner<A, R, S, O>
): Tests<A, R | O, S> => {
  const records: Array<Record> = []
  // If these are left out, nothing determines their types, and so R is never and A is void.
  const own = layer ?? ((): Layer.Layer<R> => Layer.empty as unknown as Layer.Layer<R>)
  const before: (script: S | undefined) => Effect.Effect<A, unknown, R | O | Given> = first ??
    ((): Effect.Effect<A> => Effect.void as unknown as Effect.Effect<A>)
  return {
    records,
    test: (name, body, script) =>
      it.effect(name, () =>
        Effect.suspend(() => {
          records.length = 0
          const services = Layer.provideMerge(
            own({ name, records, script }),
            Layer.mergeAll(Entropy.layerSeeded(name), Loops.layer, offline, layerMemory(records))
          )
          const whole: Effect.Effect<void, unknown, O | Scope.Scope> = Effect.provide(
            Effect.flatMap(Effect.suspend(() => before(script)), body),
            services
          )
          return Effect.andThen(TestClock.setTime(startsAt * 1000), place(around(whole, script)))
        }))
  }
}

/** Tests without a database. */
export const useTests = <A = void, R = never, S = undefined>(manner: Manner<A, R, S, never> = {}): Tests<A, R, S> =>
  testsIn((whole) => whole, manner)

/** Tests over a database that a describe block shares. */
export const useStore = <A = void, R = never, S = undefined>(
  backend: Backend,
  manner: Manner<A, R, S, Database> = {}
): Tests<A, R | Database, S> & { readonly database: TestDatabase } => {
  const database = useDatabase(backend)
  return { database, ...testsIn(database.use, manner) }
}

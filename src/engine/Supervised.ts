import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { LoopDeclaration } from "./Loops.ts"
import { engineLoops, Loops } from "./Loops.ts"
import { emit } from "./telemetry/EngineLog.ts"
import { count } from "./telemetry/EngineSeries.ts"
import { lifeMillis } from "./Time.ts"

const longestError = 2000

/**
 * Runs work in the background until its scope ends. All background work that outlives its caller is started in this
 * way. If the work fails, the failure is logged under the name of the loop and counted. After a wait, the work runs
 * again; each wait is longer than the one before. {@link Loops} knows which loops keep failing.
 */
export type Supervised<Loop extends string> = <A, R>(
  loop: Loop,
  work: Effect.Effect<A, never, R>
) => Effect.Effect<Fiber.Fiber<A>, never, R | Loops | Scope.Scope>

/** Makes the function that runs work under the names of the declared loops. */
export const makeSupervised =
  <const L extends { readonly [N in keyof L]: LoopDeclaration }>(loops: L): Supervised<keyof L & string> =>
  (loop, work) =>
    Effect.flatMap(Loops, ({ watch }) => {
      const watched = watch(loop, loops[loop])
      const run = Effect.gen(function*() {
        for (;;) {
          watched.begun(yield* lifeMillis)
          const exit = yield* Effect.exit(work)
          if (Exit.isSuccess(exit)) return exit.value
          const waitMillis = watched.died(yield* lifeMillis)
          const error = Cause.pretty(exit.cause).slice(0, longestError)
          // The work runs again even if logging or counting fails.
          yield* Effect.exit(emit("server_loop_failed", { loop, error }))
          yield* Effect.exit(count("acme_svc_loop_restarts_total", { loop }))
          yield* Effect.sleep(waitMillis)
        }
      })
      return Effect.forkScoped(Effect.ensuring(run, Effect.sync(watched.ended)), { startImmediately: true })
    })

/** Runs a background loop of the engine. */
export const supervised = makeSupervised(engineLoops)

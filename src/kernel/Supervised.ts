import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { untilBack } from "./Retries.ts"
import { emit } from "./telemetry/EventLog.ts"

/** The background work of a process, by the names that its records have. */
export type Loop =
  | "crl_export"
  | "crl_first_list"
  | "generation_retired"
  | "job_claims"
  | "job_ends_heard"
  | "job_leases"
  | "job_overdue"
  | "job_periodic"
  | "job_polls"
  | "job_times"
  | "job_wakes_heard"
  | "listener_closed"
  | "listener_sweep"
  | "reload_refused"
  | "stop_signal"
  | "tls_expiry"
  | "trace_export"
  | "worker_presence"

class Died extends Data.TaggedError("Died") {}

/**
 * Runs work in the background until its scope ends. Nothing else starts what outlives its caller: what ends the work, other
 * than its own end and that of the scope, is recorded with its name, and the work runs again after a wait that grows.
 */
export const supervised = <A, R>(
  loop: Loop,
  work: Effect.Effect<A, never, R>
): Effect.Effect<Fiber.Fiber<A>, never, R | Scope.Scope> => {
  // It runs again even if the log is what failed.
  const died = (cause: Cause.Cause<never>) =>
    Effect.andThen(
      Effect.exit(emit("server_loop_failed", { loop, error: Cause.pretty(cause).slice(0, 2000) })),
      new Died()
    )
  return Effect.forkScoped(Effect.orDie(Effect.retry(Effect.catchCause(work, died), untilBack)), {
    startImmediately: true
  })
}

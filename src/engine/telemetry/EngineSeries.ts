import { counter, gauge, makeCounting, sampledCounter } from "./Metrics.ts"

/* The series of the engine itself. A program adds its own series, and counts in both. */

/**
 * The causes by which failures are counted. `away`: the server does not answer. `full`: the disk is full. `locked`:
 * another process holds the lock. `refused`: the file or the server denies access. `damaged`: the file is damaged.
 * `conflict`: two transactions were in conflict, and run again. `late`: the time limit was exceeded. `other`: any other
 * cause.
 */
export const failureCauses = ["away", "full", "locked", "refused", "damaged", "conflict", "late", "other"] as const
export type FailureCause = (typeof failureCauses)[number]

/**
 * Which server answered a read that may go to a standby: the `standby`, or the primary for one of these reasons.
 * `away`: the standby does not answer. `behind`: its lag exceeds `database.read_max_lag_seconds`. `foreign`: it is not
 * a copy of the database. `failed`: it refused the statement. `changed`: it lacked a change of an operator. `conflict`:
 * it cancelled the read to continue its replay.
 */
export const standbyOutcomes = ["standby", "away", "behind", "foreign", "failed", "changed", "conflict"] as const
export type StandbyOutcome = (typeof standbyOutcomes)[number]

/** The series of the engine. A counter is 0 from the start of the process if all words of its labels are declared. */
export const engineSeries = {
  acme_svc_database_failures_total: counter("Statements and transactions that failed.", { cause: failureCauses }),
  acme_svc_database_rows_unreadable_total: counter(
    "Rows of the database that could not be read; each row counts at most once a minute.",
    {}
  ),
  acme_svc_database_standby_reads_total: counter(
    "Reads of operators that the standby may answer, by the server that answered, or by why the standby did not.",
    { outcome: standbyOutcomes }
  ),
  acme_svc_database_pool_connections: gauge("Connections of the process to its database.", {
    role: "text",
    state: ["idle", "busy"]
  }),
  acme_svc_database_standby_connections: gauge("Connections of the process to the standby of its database.", {
    role: "text",
    state: ["idle", "busy"]
  }),
  acme_svc_loop_restarts_total: counter("Restarts of work in the background that a defect had ended.", {
    loop: "text"
  }),
  acme_svc_log_writes_failed_total: sampledCounter("Writes of the log that its stream did not take.", { role: "text" })
} as const

/** Counts in the engine's own series. */
export const { count } = makeCounting<typeof engineSeries>()

import * as Brand from "effect/Brand"

/** A job's id: a lower-case hyphenated UUID, like the id of every record. */
export type JobId = string & Brand.Brand<"JobId">
export const JobId = Brand.nominal<JobId>()

/** Where a job stands. The last three are its ends. */
export type JobStatus = "ready" | "running" | "done" | "failed" | "cancelled"

/** A claimed row. Times are epoch seconds. */
export interface Job {
  readonly id: JobId
  readonly kind: string
  readonly dedupKey: string
  readonly payload: string
  readonly attempts: number
  readonly maxAttempts: number
  readonly deadline: number | undefined
  readonly createdAt: number
  /**
   * For whom it counts, among jobs of its kind: its group and its member of that group, if it has them ({@link shareOf}).
   */
  readonly share: string
  /**
   * The time that attempts have taken and the waits that they asked for, without the time in which no process held the
   * job.
   */
  readonly spentSeconds: number
  /** The columns of the row that cannot be read, and why; the job has stand-ins in their place. */
  readonly unreadable?: string
}

/** The share of a job. Claims are fair between groups, and between the members of each group. */
export const shareOf = (group: string, member: string): string => `${group}/${member}`

/** The group of a share. */
export const groupOf = (share: string): string => share.slice(0, Math.max(share.indexOf("/"), 0))

/** The key of periodic kinds, which have one live row. */
export const periodicKey = "all"

/** `jobs.retry_*` in seconds. */
export interface BackoffPolicy {
  readonly retry_base_seconds: number
  readonly retry_max_seconds: number
}

// 2^30 seconds is beyond any ceiling; clamping the exponent keeps the product finite.
const maxExponent = 30

/**
 * Seconds until the next attempt after `attempts` attempts (from 1). They double each time up to the ceiling; a random
 * part of up to a quarter is subtracted. `random` is uniform in [0, 1).
 */
export const backoffSeconds = (attempts: number, policy: BackoffPolicy, random: number): number => {
  const exponent = Math.min(Math.max(attempts - 1, 0), maxExponent)
  const full = Math.min(policy.retry_max_seconds, policy.retry_base_seconds * 2 ** exponent)
  return Math.max(1, Math.round(full - full * 0.25 * random))
}

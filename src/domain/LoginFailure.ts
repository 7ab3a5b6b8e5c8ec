/*
 * How long a sign-in has to wait after wrong passwords in a row (docs/decisions/admin.md, "Guesses"). NIST SP 800-63B
 * section 5.2.2 allows at most 100 of them, and suggests waits that grow.
 */

/** A series of wrong passwords. Once there are `most` wrong passwords, only one password a day is compared. */
export interface FailureLimit {
  readonly most: number
}

/** The limit for all addresses together from which the operator has not signed in recently. */
export const fromStrangers: FailureLimit = { most: 50 }

/**
 * The limit for each of the five addresses from which the operator signed in last. Together with the limit for
 * strangers the sum is 100.
 */
export const fromKnown: FailureLimit = { most: 10 }

/** How many wrong passwords in a row cost no wait. */
export const freeFailures = 10

/** Seconds to wait after each failure that follows the free ones. The last value holds for all later failures. */
export const failureWaits = [30, 60, 120, 240, 480, 960, 1920, 3600] as const

/** Seconds to wait once `most` is reached. */
export const exhaustedWait = 86_400

/** Seconds between the last wrong password and the next one that is compared. */
export const waitAfter = (failures: number, { most }: FailureLimit): number => {
  if (failures >= most) return exhaustedWait
  if (failures <= freeFailures) return 0
  return failureWaits[Math.min(failures - freeFailures, failureWaits.length) - 1] ?? 0
}

/** Returns whether a failure is reported to people: every tenth in a row is. */
export const isTold = (failures: number): boolean => failures % 10 === 0

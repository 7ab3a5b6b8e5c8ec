/*
 * How long a sign-in has to wait after several wrong passwords in a row (docs/contribute/decisions/admin.md,
 * "Guesses"). NIST SP 800-63B section 5.2.2 allows at most 100 such passwords, and suggests increasing waits.
 */

/** The limit of a series of wrong passwords. After `most` wrong passwords, only one password a day is compared. */
export interface FailureLimit {
  readonly most: number
}

/** The common limit for all addresses from which the operator has not signed in recently. */
export const fromStrangers: FailureLimit = { most: 50 }

/**
 * The limit for each of the five addresses from which the operator signed in last. The sum of these limits and the
 * limit for strangers is 100.
 */
export const fromKnown: FailureLimit = { most: 10 }

/** The number of wrong passwords in a row that cause no wait. */
export const freeFailures = 10

/**
 * The wait, in seconds, after each wrong password that follows the free ones. The last value is used for all later
 * wrong passwords.
 */
export const failureWaits = [30, 60, 120, 240, 480, 960, 1920, 3600] as const

/** The wait, in seconds, once the limit `most` is reached. */
export const exhaustedWait = 86_400

/** Returns the seconds that must pass after the last wrong password before another password is compared. */
export const waitAfter = (failures: number, { most }: FailureLimit): number => {
  if (failures >= most) return exhaustedWait
  if (failures <= freeFailures) return 0
  return failureWaits[Math.min(failures - freeFailures, failureWaits.length) - 1] ?? 0
}

/** Returns whether a wrong password is reported. Every tenth wrong password in a row is reported. */
export const isTold = (failures: number): boolean => failures % 10 === 0

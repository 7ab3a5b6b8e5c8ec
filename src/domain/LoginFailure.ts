/*
 * How long somebody waits after wrong passwords in a row (docs/decisions/admin.md, "Guesses"): NIST SP 800-63B section 5.2.2
 * has at most 100 of them, and waits that grow.
 */

/** A series of wrong passwords. `most` is how many there may be before only one a day is left. */
export interface FailureLimit {
  readonly most: number
}

/** From addresses that the operator has not signed in from lately, all together. */
export const fromStrangers: FailureLimit = { most: 50 }

/** From one of the five addresses that the operator has signed in from last: with the others it makes a hundred. */
export const fromKnown: FailureLimit = { most: 10 }

/** How many wrong passwords in a row cost no wait. */
export const freeFailures = 10

/** Seconds to wait after the failures that follow the free ones, one by one. The last is for all after it. */
export const failureWaits = [30, 60, 120, 240, 480, 960, 1920, 3600] as const

/** Seconds to wait once there have been the most. */
export const exhaustedWait = 86_400

/** Seconds between the last wrong password and the next one that is compared. */
export const waitAfter = (failures: number, { most }: FailureLimit): number => {
  if (failures >= most) return exhaustedWait
  if (failures <= freeFailures) return 0
  return failureWaits[Math.min(failures - freeFailures, failureWaits.length) - 1] ?? 0
}

/** Whether a failure is one that people are told of: each tenth in a row. */
export const isTold = (failures: number): boolean => failures % 10 === 0

import { Schedule } from "effect"

/** Tries again until what is away is back: after a second, then twice as long each time, and every half minute at last. */
export const untilBack = Schedule.union(Schedule.exponential("1 second"), Schedule.spaced("30 seconds"))

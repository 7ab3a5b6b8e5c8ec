import type { Level, Outcome } from "./Declaration.ts"

/** Level and outcome of one record. */
export interface Weight {
  readonly level: Level
  readonly outcome: Outcome
}

/** Only `request_completed` is weighed by its content: a 5xx is a failure, another answer to a probe is `debug`. */
export const accessWeight = (status: number, isProbe: boolean): Weight =>
  status >= 500
    ? { level: "warn", outcome: "failure" }
    : { level: isProbe ? "debug" : "info", outcome: "success" }

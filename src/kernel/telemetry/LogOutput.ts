import * as Context from "effect/Context"

/** How the stream is that takes the log. */
export interface OutputState {
  /** How many writes it has not taken since the process began. */
  readonly lost: number
  /** The system's code of the last write, such as `ENOSPC`, if it was not taken. */
  readonly trouble: string | undefined
}

/** Every write was taken. */
export const nothingLost: OutputState = { lost: 0, trouble: undefined }

/**
 * The state of the log's stream, for readiness and metrics: a log that cannot be written cannot say so itself. By default nothing is lost.
 */
export const LogOutput = Context.Reference<{ readonly state: () => OutputState }>("acme/kernel/telemetry/LogOutput", {
  defaultValue: () => ({ state: () => nothingLost })
})

import * as Context from "effect/Context"

/** The state of the stream that takes the log. */
export interface OutputState {
  /** How many writes were lost since the process began. */
  readonly lost: number
  /** The system's code for the last write, such as `ENOSPC`, if that write was lost. */
  readonly trouble: string | undefined
}

/** No write was lost. */
export const nothingLost: OutputState = { lost: 0, trouble: undefined }

/**
 * The state of the log's stream, for readiness and metrics, because a log that cannot be written cannot report that
 * itself. By default nothing is lost.
 */
export const LogOutput = Context.Reference<{ readonly state: () => OutputState }>("acme/engine/telemetry/LogOutput", {
  defaultValue: () => ({ state: () => nothingLost })
})

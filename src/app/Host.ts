import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { PanelFiles } from "../surfaces/panel/Statics.ts"

/** An output stream of the process. */
export interface Output {
  readonly isTerminal: boolean
  /** The width of the terminal, if it reports its width. */
  readonly columns?: number | undefined
  /** Writes a text. `done` hears the system's error if the text was not taken; a stream that loses nothing need not call it. */
  readonly write: (text: string, done?: (error: NodeJS.ErrnoException | null | undefined) => void) => void
}

/** An output stream for a text without a fixed end. */
export interface Pipe extends Output {
  /** Writes a text, waits until it was written, and returns whether somebody still reads. */
  readonly send: (text: string) => Effect.Effect<boolean>
  /**
   * Waits until all texts were written. Returns the system's error code for the first text that was not written, such
   * as `ENOSPC`.
   */
  readonly flushed: Effect.Effect<string | undefined>
}

/** The output streams of the process, and the variables that configure its output. */
export interface Streams {
  readonly stdout: Output
  readonly stderr: Output
  readonly env: { readonly [name: string]: string | undefined }
}

/** The files that belong to the program, and its version. */
export interface Installed {
  readonly version: string
  /** The folder with `sqlite/` and `postgres/`. */
  readonly migrations: string
  readonly panel: PanelFiles
}

/** The properties of the process that are not in its configuration. */
export interface Process extends Installed {
  readonly pid: number
  /** Completes with the signal that asks the process to stop. */
  readonly stopSignal: Effect.Effect<"SIGINT" | "SIGTERM">
  /** Completes when the process is asked to reload. Requests that arrive while nobody waits count as one. */
  readonly reloadSignal: Effect.Effect<void>
  /** Dies with an exception that nothing caught. */
  readonly uncaught: Effect.Effect<never>
}

/** The environment of a command line: the process that runs it, or a test's replacement. */
export class Host extends Context.Service<
  Host,
  Streams & {
    readonly stdout: Pipe
    readonly cwd: string
    readonly process: Process
    readonly stdin: {
      readonly isTerminal: boolean
      /** The next line, without its end. */
      readonly readLine: Effect.Effect<string>
      /** The next line as it is typed at a terminal that does not show it. */
      readonly readHidden: Effect.Effect<string>
    }
  }
>()("acme/app/Host") {}

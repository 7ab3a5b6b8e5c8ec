import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Parent } from "../engine/processes/OwnParent.ts"
import type { PanelFiles } from "../surfaces/panel/Statics.ts"

/** An output stream of the process. */
export interface Output {
  readonly isTerminal: boolean
  /** The number of columns of the terminal, if it reports this number. */
  readonly columns?: number | undefined
  /**
   * Writes a text. If the write fails, `done` is called with the system's error. A stream whose writes never fail need
   * not call `done`.
   */
  readonly write: (text: string, done?: (error: NodeJS.ErrnoException | null | undefined) => void) => void
}

/** An output stream for output of any length. */
export interface Pipe extends Output {
  /** Writes a text, waits until it was written, and returns whether the reader is still there. */
  readonly send: (text: string) => Effect.Effect<boolean>
  /**
   * Waits until all texts have been written. If a text could not be written, returns the system's error code for the
   * first such text, such as `ENOSPC`.
   */
  readonly flushed: Effect.Effect<string | undefined>
}

/** The output streams of the process, and the environment variables that configure the output. */
export interface Streams {
  readonly stdout: Output
  readonly stderr: Output
  /** Whether other processes of the service write to the same streams. */
  readonly isShared?: boolean
  readonly env: { readonly [name: string]: string | undefined }
}

/** The files that belong to the program, and its version. */
export interface Installed {
  readonly version: string
  /** The folder with `sqlite/` and `postgres/`. */
  readonly migrations: string
  readonly panel: PanelFiles
  /** The folder with the pages of the documents. */
  readonly site: string
}

/** The properties of the process that its configuration does not contain. */
export interface Process extends Installed {
  readonly pid: number
  /** What a person types to run the program here. */
  readonly program: string
  /** The process that started this one to serve a part of the service (docs/contribute/decisions/processes.md). */
  readonly parent?: Parent | undefined
  /** Completes with the signal that asks the process to stop. */
  readonly stopSignal: Effect.Effect<"SIGINT" | "SIGTERM">
  /**
   * Completes when the process is asked to reload. Several requests count as one if they arrive before this effect runs
   * again.
   */
  readonly reloadSignal: Effect.Effect<void>
  /** Dies with an exception that no code has caught. */
  readonly uncaught: Effect.Effect<never>
}

/** The surroundings of a command line: the process that runs it or, in a test, a replacement. */
export class Host extends Context.Service<
  Host,
  Streams & {
    readonly stdout: Pipe
    readonly cwd: string
    readonly process: Process
    readonly stdin: {
      readonly isTerminal: boolean
      /** Reads the next line, without its line end. At the end of the input the line is empty. */
      readonly readLine: Effect.Effect<string>
      /** Reads the next line, without its line end. Returns undefined at the end of the input. */
      readonly nextLine: Effect.Effect<string | undefined>
      /** Reads everything up to the end. Returns undefined if there are more octets than `most`. */
      readonly readAll: (most: number) => Effect.Effect<Uint8Array | undefined>
      /**
       * Writes a question to standard error, and reads the next line while it is typed. The terminal does not show the
       * line, also if it is typed as soon as the question is seen. Returns undefined if the input ends before anything is
       * typed.
       */
      readonly readHidden: (question: string) => Effect.Effect<string | undefined>
    }
  }
>()("acme/app/Host") {}

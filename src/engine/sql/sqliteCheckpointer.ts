import Sqlite from "better-sqlite3"
import { parentPort, workerData } from "node:worker_threads"

/*
 * The thread of the checkpoints: it has a connection of its own, and copies the write-ahead file of a SQLite database
 * into the main file. The program imports as little as possible, so that it starts quickly.
 */

/**
 * What the thread does. `NOOP` only measures the write-ahead file. `PASSIVE` copies as much as it can without waiting
 * for readers and writers. `RESTART` copies everything, and lets the next commit reuse the file.
 */
export type Mode = "NOOP" | "PASSIVE" | "RESTART"

/** The state of the write-ahead file after a copy. */
export interface Copied {
  /** The frames in the file. */
  readonly frames: number
  /** How many of these frames have been copied into the main file. */
  readonly copied: number
  /** Whether a reader or a writer of another process prevented the complete copy. */
  readonly isBusy: boolean
}

/** The state of the file, or the reason why the copying failed. */
export type Answer = Copied | { readonly code: string; readonly message: string }

/** How many milliseconds a `RESTART` waits for readers, and for writers of other processes. */
const patienceMillis = 50

let database: Sqlite.Database | undefined

const open = (): Sqlite.Database => {
  const opened = new Sqlite(String(workerData), { fileMustExist: true, timeout: patienceMillis })
  opened.pragma("synchronous = FULL")
  return opened
}

const answer = (mode: Mode): Answer => {
  try {
    database ??= open()
    const [row] = database.pragma(`wal_checkpoint(${mode})`) as ReadonlyArray<
      { readonly busy: number; readonly log: number; readonly checkpointed: number }
    >
    return { frames: row?.log ?? 0, copied: row?.checkpointed ?? 0, isBusy: row?.busy !== 0 }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return { code: "code" in error ? String(error.code) : "", message: error.message }
  }
}

parentPort?.on("message", (mode: Mode) => parentPort?.postMessage(answer(mode)))

import cluster from "node:cluster"
import { childVariable, stopMessage } from "./ChildVariable.ts"

/** How a process ended: its exit code, or the signal that ended it, or the error because of which it never began. */
export interface Ended {
  readonly code: number | null
  readonly signal: string | null
  /** The system's error code if the process could not be started, such as `EAGAIN`. */
  readonly error?: string
}

/** The functions that a parent passes to {@link fork}. They are called with the news of the child. */
export interface Heard {
  /** Called with each message of the child. */
  readonly message: (message: unknown) => void
  /** Called once, when the child has ended or could not be started. */
  readonly ended: (how: Ended) => void
}

/** A child process of this process. */
export interface Forked {
  /** The process id. Undefined if the system could not start the process. */
  readonly pid: number | undefined
  /** Sends a message. A child that has ended gets none. */
  readonly send: (message: object) => void
  /** Asks the child to stop. A child that is not ready yet gets a signal, because it does not read messages yet. */
  readonly stop: (isReady: boolean) => void
  /** Ends the child at once. The system does this even if the child itself does nothing any more. */
  readonly kill: () => void
}

/**
 * Starts this program once more, with the same command line, environment and output. This process binds the sockets on
 * which its children listen, but accepts no connection itself. The children of one address share one socket, and each
 * child accepts connections from this socket (docs/contribute/decisions/processes.md, "One socket").
 */
export const fork = ({ ended, message }: Heard): Forked => {
  cluster.schedulingPolicy = cluster.SCHED_NONE
  const worker = cluster.fork({ [childVariable]: "1" })
  worker.on("message", message)
  worker.once("exit", (code, signal) => ended({ code, signal }))
  // A child that was started reports its end by `exit`.
  worker.on("error", ({ code, message }: NodeJS.ErrnoException) => {
    if (worker.process.pid === undefined) ended({ code: null, signal: null, error: code ?? message })
  })
  const send = (message: object): void => {
    if (worker.isConnected()) worker.send(message, () => {})
  }
  return {
    pid: worker.process.pid,
    send,
    stop: (isReady) => {
      if (isReady) send(stopMessage)
      else worker.process.kill("SIGTERM")
    },
    kill: () => void worker.process.kill("SIGKILL")
  }
}

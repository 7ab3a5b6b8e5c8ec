import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import cluster from "node:cluster"
import { childVariable, isStop } from "./ChildVariable.ts"

/** The process that has started this one as its child. */
export interface Parent {
  /** The next message of the parent. */
  readonly received: Effect.Effect<unknown>
  /** Sends a message to the parent. */
  readonly send: (message: object) => Effect.Effect<void>
  /**
   * Calls `stop` when the parent asks this process to stop, and `lost` when the parent has ended without asking. Until
   * this function is called, the end of the parent ends this process at once.
   */
  readonly listen: (on: { readonly stop: () => void; readonly lost: () => void }) => void
}

/** The parent of this process. Dies if this process is not a child of {@link fork}. */
export const ownParent: Effect.Effect<Parent> = Effect.gen(function*() {
  const { worker } = cluster
  if (worker === undefined) {
    const message =
      `The variable ${childVariable} is only for processes that the service itself starts. Remove it from the environment.`
    return yield* Effect.die(new Error(message))
  }
  const messages = yield* Queue.unbounded<unknown>()
  let stop: (() => void) | undefined
  worker.on("message", (message: unknown) => {
    if (isStop(message)) stop?.()
    else Queue.offerUnsafe(messages, message)
  })
  return {
    received: Queue.take(messages),
    send: (message) =>
      Effect.sync(() => {
        if (worker.isConnected()) worker.send(message, () => {})
      }),
    listen: (on) => {
      stop = on.stop
      worker.once("disconnect", () => {
        worker.exitedAfterDisconnect = true // otherwise the runtime ends this process at once
        on.lost()
      })
    }
  }
})

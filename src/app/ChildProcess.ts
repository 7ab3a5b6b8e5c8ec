import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Ended } from "../engine/processes/Fork.ts"
import { fork } from "../engine/processes/Fork.ts"
import type { ConfigFile } from "../settings/Load.ts"
import type { Reply, Task, ToChild } from "./ProcessMessage.ts"
import { ToParent } from "./ProcessMessage.ts"

/** An answer of a child, or undefined if the child ended without an answer. */
export type Answer = Reply | undefined

/** A running child, as its parent sees it. */
export interface ChildProcess {
  readonly pid: number | undefined
  readonly isReady: () => boolean
  /** Completes when the child serves. */
  readonly ready: Effect.Effect<void>
  /** Returns the vital loops that keep failing in the child, as the child last reported them. */
  readonly failing: () => ReadonlyArray<string>
  /** Asks the child a question. */
  readonly ask: (
    type: "ping" | "publish" | "scrape" | "signIn" | { readonly build: ConfigFile }
  ) => Effect.Effect<Answer>
  readonly tell: (message: Extract<ToChild, { readonly type: "abandon" | "service" }>) => void
  readonly stop: Effect.Effect<void>
  /** Ends the child at once. */
  readonly kill: Effect.Effect<void>
  /** Completes when the child has ended. */
  readonly ended: Effect.Effect<Ended>
}

const decode = Schema.decodeUnknownOption(ToParent)

/** Starts a child with its task and the configuration file in force. */
export const startChild = (task: Task, file: ConfigFile): Effect.Effect<ChildProcess> =>
  Effect.sync(() => {
    const ready = Deferred.makeUnsafe<void>()
    const ended = Deferred.makeUnsafe<Ended>()
    const questions = new Map<number, Deferred.Deferred<Answer>>()
    let failing: ReadonlyArray<string> = []
    let asked = 0
    const { kill, pid, send, stop } = fork({
      message: (given) => {
        const message = Option.getOrUndefined(decode(given))
        if (message?.type === "state") {
          failing = message.failing
          Deferred.doneUnsafe(ready, Exit.void)
        } else if (message !== undefined) {
          const question = questions.get(message.id)
          questions.delete(message.id)
          if (question !== undefined) Deferred.doneUnsafe(question, Exit.succeed(message))
        }
      },
      ended: (how) => {
        Deferred.doneUnsafe(ended, Exit.succeed(how))
        for (const question of questions.values()) Deferred.doneUnsafe(question, Exit.succeed(undefined))
        questions.clear()
      }
    })
    const tell = (message: ToChild) => send(message)
    tell({ type: "begin", task, file })
    const isReady = () => Deferred.isDoneUnsafe(ready)
    return {
      pid,
      isReady,
      ready: Deferred.await(ready),
      failing: () => failing,
      ask: (type) =>
        Effect.suspend(() => {
          if (Deferred.isDoneUnsafe(ended)) return Effect.undefined
          const id = ++asked
          const question = Deferred.makeUnsafe<Answer>()
          questions.set(id, question)
          tell(typeof type === "string" ? { type, id } : { type: "build", id, file: type.build })
          return Effect.ensuring(Deferred.await(question), Effect.sync(() => void questions.delete(id)))
        }),
      tell,
      stop: Effect.sync(() => stop(isReady())),
      kill: Effect.sync(kill),
      ended: Deferred.await(ended)
    }
  })

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { emit } from "../domain/words/Log.ts"
import type { ConfigFile } from "../settings/Load.ts"
import type { Answer, ChildProcess } from "./ChildProcess.ts"
import { CommandFailed } from "./CommandFailed.ts"
import type { Task } from "./ProcessMessage.ts"

/*
 * The questions that a parent asks all of its children, and what it does with children that do not answer
 * (docs/contribute/decisions/processes.md, "Reload").
 */

/** The children that run, by their numbers. */
type Running = ReadonlyMap<number, ChildProcess>

/** How long a parent waits for an answer that a child can give at once. */
export const answerMillis = 5000

/** How long a reload waits for each answer of a child that is well. */
const reloadMillis = 120_000

/** A child that was asked a question, and its answer. The answer is `late` if it did not come in time. */
interface Asked {
  readonly process: number
  readonly child: ChildProcess
  readonly answer: Answer | "late"
}

/** Asks every child that serves, and waits so many milliseconds for the answers. */
export const askAll = (
  running: Running,
  question: Parameters<ChildProcess["ask"]>[0],
  millis: number
): Effect.Effect<ReadonlyArray<Asked>> => {
  const asked = [...running].filter(([, child]) => child.isReady())
  return Effect.forEach(
    asked,
    ([process, child]) =>
      Effect.map(
        Effect.timeoutOption(child.ask(question), millis),
        (answer): Asked => ({ process, child, answer: Option.getOrElse(answer, () => "late" as const) })
      ),
    { concurrency: Math.max(asked.length, 1) }
  )
}

/** Ends a child that does not answer. It can be frozen, so only a signal that no process can ignore ends it. */
export const end = (process: number, { kill, pid }: ChildProcess): Effect.Effect<void> =>
  Effect.andThen(emit("server_process_silent", { process, pid }), kill)

/** Ends the children whose answers are late. */
const endLate = (asked: ReadonlyArray<Asked>) =>
  Effect.forEach(asked.filter(({ answer }) => answer === "late"), ({ child, process }) => end(process, child), {
    discard: true
  })

/** Ends the children that do not serve yet. */
export const endStarting = (running: Running): Effect.Effect<void> =>
  Effect.suspend(() =>
    Effect.forEach([...running].filter(([, child]) => !child.isReady()), ([process, child]) => end(process, child), {
      discard: true
    })
  )

const refusalIn = (asked: ReadonlyArray<Asked>): CommandFailed | undefined => {
  for (const { answer, process } of asked) {
    if (answer === "late") {
      return new CommandFailed({ code: 1, message: `Process ${process} does not answer. Reload once more.` })
    }
    if (answer === undefined) {
      return new CommandFailed({ code: 1, message: `Process ${process} ended during the reload. Reload once more.` })
    }
    if (answer.type === "refused") {
      return new CommandFailed({ code: answer.code === 3 ? 3 : 1, message: answer.message })
    }
  }
  return undefined
}

/**
 * Lets every child prepare to serve a file, runs `publish`, and lets the children serve the file. Returns how many
 * listeners of a child have a new address. Each step has a time limit, because no child starts meanwhile.
 */
export const reloadAll = Effect.fnUntraced(function*(
  { running, tasks }: { readonly running: Running; readonly tasks: ReadonlyArray<Task> },
  next: ConfigFile,
  publish: Effect.Effect<void>
): Effect.fn.Return<number, CommandFailed> {
  // A child that is well may need long to build, so whether a child is well is a question of its own.
  const alive = yield* askAll(running, "ping", answerMillis)
  yield* endLate(alive)
  const silent = refusalIn(alive)
  if (silent !== undefined) return yield* silent
  const built = yield* askAll(running, { build: next }, reloadMillis)
  const refusal = refusalIn(built)
  if (refusal !== undefined) {
    for (const child of running.values()) child.tell({ type: "abandon" })
    return yield* refusal
  }
  yield* publish
  // The others serve the file already. The successor of a child that does not answer serves it too.
  yield* endLate(yield* askAll(running, "publish", reloadMillis))
  for (const { process } of tasks) {
    if (!built.some((one) => one.process === process)) yield* emit("server_process_unasked", { process })
  }
  return Math.max(
    0,
    ...built.map(({ answer }) => answer !== "late" && answer?.type === "built" ? answer.rebound : 0)
  )
})

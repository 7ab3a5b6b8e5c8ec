import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { rolesText } from "../domain/Role.ts"
import { emit } from "../domain/words/Log.ts"
import { supervised } from "../domain/words/Loop.ts"
import { Loops } from "../engine/Loops.ts"
import type { Ended } from "../engine/processes/Fork.ts"
import { mergeScrapes } from "../engine/telemetry/MergedScrapes.ts"
import { lifeMillis } from "../engine/Time.ts"
import type { ConfigFile } from "../settings/Load.ts"
import type { SignInState } from "../surfaces/cli/Welcome.ts"
import type { ChildProcess } from "./ChildProcess.ts"
import { startChild } from "./ChildProcess.ts"
import { answerMillis, askAll, end, endStarting, reloadAll } from "./ChildQuestions.ts"
import { CommandFailed } from "./CommandFailed.ts"
import type { SignIn, Task } from "./ProcessMessage.ts"

/** The children of a process, which are kept alive. */
export interface Children {
  /**
   * Returns the names of what keeps failing: loops of children, and children themselves (`process_1`). `life` is the
   * time since the start, in milliseconds.
   */
  readonly failing: (life: number) => ReadonlyArray<string>
  /**
   * Starts the children. The child that migrates and makes the CA starts first. When it serves, one child for clients
   * starts, and when this one serves, all others start. If one of the first two cannot start, this fails with the exit
   * code of that child. From then on, a child that ends has a successor, and every child is told what keeps the service
   * from being ready. This does not wait for the others: one of them may never serve.
   */
  readonly begin: Effect.Effect<void, CommandFailed, Loops | Scope.Scope>
  /** The text of a scrape. A child that does not answer in time is left out. */
  readonly scrape: Effect.Effect<string>
  /**
   * Whether somebody can sign in to the panel, as the child that serves it tells. Undefined if there is no such child,
   * or if it does not answer in time.
   */
  readonly signIn: Effect.Effect<SignInState | undefined>
  /**
   * Lets every child prepare to serve a file. If all of them can, runs `publish`, and then the children serve the file.
   * Otherwise nothing changes, and this fails with the first refusal. A child that does not answer is a refusal, and is
   * ended and replaced. A child that waits for its next start is not asked, and starts with the new file at once.
   * Returns how many listeners of a child have a new address.
   */
  readonly reload: (next: ConfigFile, publish: Effect.Effect<void>) => Effect.Effect<number, CommandFailed>
  /** Asks every child to stop, and waits until all have ended. After so many milliseconds, ends those that are left. */
  readonly stop: (millis: number) => Effect.Effect<void>
}

/** What the children of one run share. */
interface State {
  readonly tasks: ReadonlyArray<Task>
  readonly loops: Loops["Service"]
  /** The configuration file in force. */
  readonly file: () => ConfigFile
  readonly start: typeof startChild
  readonly failing: Children["failing"]
  readonly running: Map<number, ChildProcess>
  /**
   * A start takes one permit. A reload takes all permits, so that no child starts with the old file during the reload.
   */
  readonly starts: Semaphore.Semaphore
  /** Releases the starts that wait, because a reload may have removed what made the earlier ones fail. */
  readonly reloaded: Latch.Latch
  /** Fails with the reason why the service cannot start. */
  readonly failed: Deferred.Deferred<never, CommandFailed>
  hasStarted: boolean
  stopping: boolean
}

/** How long a reload waits for children that are starting. */
const startMillis = 60_000

/**
 * How often each child that serves is asked for a sign of life, and after how many missing answers in a row it is
 * ended.
 */
const betweenPings = "15 seconds"
const mostMissed = 4

const betweenLooks = "1 second"
const exitCodes = [1, 2, 3] as const

/**
 * Returns the failure for a child that ended before the service had started. The child itself has printed the reason,
 * unless a signal ended it or the system could not start it.
 */
const notStarted = (process: number, { code, error, signal }: Ended): CommandFailed =>
  new CommandFailed({
    code: exitCodes.find((known) => known === code) ?? 1,
    message: error !== undefined
      ? `The system could not start process ${process} (${error}).`
      : code === null
      ? `The first start of process ${process} was ended by ${signal}.`
      : ""
  })

/** Starts a child, and waits until it serves or has ended. Starts none if the service stops. */
const begun = Effect.fnUntraced(function*(state: State, task: Task) {
  const { failing, file, running, start } = state
  const { process } = task
  // The stop may have come during the wait for the permit, and it waits only for children that it has seen.
  if (state.stopping) return undefined
  const since = yield* lifeMillis
  const child = yield* start(task, file())
  running.set(process, child)
  // A process that the system could not start has no process id, and its end has the reason.
  if (child.pid !== undefined) {
    yield* emit("server_process_started", { process, pid: child.pid, roles: rolesText(new Set(task.roles)) })
  }
  yield* Effect.raceFirst(child.ready, child.ended)
  const life = yield* lifeMillis
  if (child.isReady()) yield* emit("server_process_ready", { process, elapsed_ms: life - since })
  child.tell({ type: "service", failing: failing(life) })
  return child
})

/**
 * Ends a child that serves but answers no more, because its thread is stuck. Its clients would wait until their own time
 * limits. A child that only stops still answers.
 */
const endSilent = Effect.fnUntraced(function*(process: number, child: ChildProcess) {
  for (let missed = 0; missed < mostMissed;) {
    yield* Effect.sleep(betweenPings)
    const answer = yield* Effect.timeoutOption(child.ask("ping"), answerMillis)
    missed = Option.isNone(answer) ? missed + 1 : 0
  }
  yield* end(process, child)
})

/**
 * Keeps one child running: each child that ends has a successor. The successor of a child that has served for a while
 * starts at once. The waits grow while children keep ending.
 */
const keep = Effect.fnUntraced(function*(state: State, task: Task, first: Deferred.Deferred<void>) {
  const { failed, loops, running, starts } = state
  const { process } = task
  const watched = loops.watch(`process_${process}`, { isVital: true })
  for (;;) {
    const child = yield* starts.withPermits(1)(begun(state, task))
    if (child === undefined) return
    if (child.isReady()) {
      // Before this, the child does not answer. A start can take longer than a loop has to run to count as healthy.
      watched.begun(yield* lifeMillis)
      yield* Deferred.succeed(first, undefined)
    }
    const silent = child.isReady() ? endSilent(process, child) : Effect.void
    const ended = yield* Effect.raceFirst(child.ended, Effect.andThen(silent, Effect.never))
    running.delete(process)
    if (state.stopping) return
    if (!state.hasStarted && !child.isReady()) {
      yield* Deferred.fail(failed, notStarted(process, ended))
      return
    }
    // A child that somebody has stopped has not failed.
    const wait_ms = ended.code === 0 && child.isReady() ? 0 : watched.died(yield* lifeMillis) - 1000
    const { code, error, signal } = ended
    yield* emit("server_process_ended", {
      process,
      exit_code: code ?? undefined,
      signal: signal ?? undefined,
      error,
      wait_ms
    })
    yield* Effect.raceFirst(Effect.sleep(wait_ms), state.reloaded.await)
  }
})

/** Starts a child, and keeps it running. The effect that this returns waits until the child serves. */
const begin = Effect.fnUntraced(function*(state: State, task: Task) {
  const first = yield* Deferred.make<void>()
  yield* supervised("process_kept", keep(state, task, first))
  return Effect.raceFirst(Deferred.await(first), Deferred.await(state.failed))
})

/** Returns a state that a child has told. */
const stateOf = (state: SignIn): SignInState | undefined => {
  switch (state._tag) {
    case "unknown":
      return undefined
    case "link":
      return { ...state, url: Redacted.make(state.url) }
    case "needsLink":
      return state
    default:
      return { _tag: state._tag }
  }
}

/** Tells every child what keeps the service from being ready, each time that this changes. */
const spread = ({ failing, running }: State) => {
  let told = ""
  const tell = Effect.map(lifeMillis, (life) => {
    const now = failing(life)
    if (told === now.join()) return
    told = now.join()
    for (const child of running.values()) child.tell({ type: "service", failing: now })
  })
  return supervised("process_readiness", Effect.repeat(tell, Schedule.spaced(betweenLooks)))
}

/**
 * Makes the children for these tasks. `file` returns the configuration file in force. A test passes a `start` of its
 * own.
 */
export const makeChildren = (
  tasks: ReadonlyArray<Task>,
  file: () => ConfigFile,
  start: typeof startChild = startChild
): Effect.Effect<Children, never, Loops> =>
  Effect.gen(function*() {
    const loops = yield* Loops
    const running = new Map<number, ChildProcess>()
    const failing = (life: number): ReadonlyArray<string> => [
      ...new Set([...loops.failing(life), ...[...running.values()].flatMap((child) => child.failing())])
    ]
    const state: State = {
      tasks,
      loops,
      file,
      start,
      failing,
      running,
      starts: yield* Semaphore.make(tasks.length),
      reloaded: yield* Latch.make(),
      failed: yield* Deferred.make<never, CommandFailed>(),
      hasStarted: false,
      stopping: false
    }
    return {
      failing,
      begin: Effect.gen(function*() {
        const [first, ...rest] = tasks.filter(({ process }) => process > 0)
        for (const task of tasks.filter((task) => task.process === 0 || task === first)) {
          yield* yield* begin(state, task)
        }
        state.hasStarted = true
        yield* spread(state)
        for (const task of rest) yield* begin(state, task)
      }),
      scrape: Effect.suspend(() =>
        Effect.map(
          askAll(running, "scrape", answerMillis),
          (asked) =>
            mergeScrapes(
              asked.flatMap(({ answer }) => answer !== "late" && answer?.type === "scraped" ? [answer.text] : [])
            )
        )
      ),
      signIn: Effect.suspend(() => {
        const { process } = tasks.find(({ roles }) => roles.includes("admin")) ?? {}
        const child = process === undefined ? undefined : running.get(process)
        return child?.isReady() !== true ? Effect.undefined : Effect.map(
          Effect.timeoutOption(child.ask("signIn"), answerMillis),
          (answer) => {
            const given = Option.getOrUndefined(answer)
            return given?.type === "signIns" ? stateOf(given.state) : undefined
          }
        )
      }),
      reload: (next, publish) =>
        // A child that hangs in its start would keep its permit, and so the reload, for ever.
        Effect.raceFirst(
          state.starts.withPermits(tasks.length)(
            Effect.tap(reloadAll(state, next, publish), () => state.reloaded.release)
          ),
          Effect.andThen(Effect.delay(endStarting(running), startMillis), Effect.never)
        ),
      stop: (millis) =>
        Effect.suspend(() => {
          state.stopping = true
          return Effect.forEach([...running], ([process, child]) =>
            Effect.gen(function*() {
              yield* child.stop
              const ended = yield* Effect.timeoutOption(Effect.interruptible(child.ended), millis)
              if (Option.isNone(ended)) {
                yield* Effect.andThen(end(process, child), child.ended)
              }
            }), { concurrency: tasks.length, discard: true })
        })
    }
  })

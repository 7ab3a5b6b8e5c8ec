import { Clock, Duration, Effect } from "effect"
import type { Fiber, Scheduler } from "effect"
import type { Hash } from "node:crypto"
import { createHash } from "node:crypto"
import { countNative, native } from "./Native.ts"
import type { Random } from "./Random.ts"

/*
 * One simulated computer. Several processes run on the computer in turn, a few operations at a time, in an order that a
 * seed determines. The processes wait only for tasks and timers of this computer, so that nothing depends on the speed
 * of the real machine. Only time, randomness, the outside world and the order of events are simulated. The code is that
 * of the service.
 */

/** The milliseconds within which files and threads answer. */
const slowestAnswer = 20

const realImmediate = globalThis.setImmediate
const turn = (): Promise<void> => new Promise((resume) => void realImmediate(resume))

interface Timer {
  readonly at: number
  readonly fire: () => void
}

/** A process of the machine. It has its own clock and its own tasks. After its end, none of its code runs. */
export class Process {
  readonly name: string
  readonly clock: Clock.Clock
  /** How many milliseconds the clock of the process is ahead of that of the machine. */
  skew = 0
  isAlive = true
  /** Returns how many milliseconds longer than requested a wait lasts. */
  lateness: (millis: number) => number = () => 0
  /** The time of the machine until which the process is stopped. */
  stoppedUntil = 0
  readonly tasks: Array<() => void> = []
  /** Called when the process is killed. */
  readonly onKilled = new Set<() => void>()
  readonly #machine: Machine
  readonly #scheduler: Scheduler.Scheduler
  #operations = 0

  constructor(machine: Machine, name: string, random: Random, longestRun: number) {
    this.name = name
    this.#machine = machine
    const dispatcher = { scheduleTask: (task: () => void) => void this.tasks.push(task), flush: () => {} }
    this.#scheduler = {
      executionMode: "async",
      shouldYield: () => {
        // Otherwise a fiber would continue at once when a timer, a promise or another process resumes it. Here the
        // fiber waits for the next step of its own process.
        if (!machine.isRunning(this)) return true
        if (this.#operations-- > 0) return false
        this.#operations = random.below(longestRun)
        return true
      },
      makeDispatcher: () => dispatcher
    }
    const millis = () => machine.now + this.skew
    const wallNanos = () => BigInt(millis()) * 1_000_000n
    // Elapsed time is measured, so it never goes back, whatever the clock reads.
    const elapsedNanos = () => BigInt(machine.now) * 1_000_000n
    this.clock = {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: wallNanos,
      currentTimeNanos: Effect.sync(wallNanos),
      monotonicTimeNanosUnsafe: elapsedNanos,
      monotonicTimeNanos: Effect.sync(elapsedNanos),
      // A change of the clock does not change the length of a wait.
      sleep: (duration) =>
        Effect.callback((resume) => {
          const length = Duration.toMillis(duration)
          return machine.after(length + this.lateness(length), () => resume(Effect.void))
        })
    }
  }

  /** Starts a fiber of this process. */
  fork<A, E>(effect: Effect.Effect<A, E>): Fiber.Fiber<A, E> {
    return Effect.runFork(Effect.provideService(effect, Clock.Clock, this.clock), { scheduler: this.#scheduler })
  }

  /** Kills the process as kill -9 does: no finalizer runs, and no task is left. */
  kill(): void {
    if (!this.isAlive) return
    this.isAlive = false
    this.tasks.length = 0
    this.#machine.processes.delete(this)
    for (const told of this.onKilled) told()
  }
}

/** A machine. `trace` receives every event, in order. */
export class Machine {
  /** The time of the machine in epoch milliseconds. */
  now: number
  steps = 0
  readonly processes = new Set<Process>()
  readonly #random: Random
  readonly #trace: ((line: string) => void) | undefined
  readonly #digest: Hash = createHash("sha256")
  readonly #timers: Array<Timer> = []
  #running: Process | undefined

  constructor(options: {
    readonly now: number
    readonly random: Random
    readonly trace?: ((line: string) => void) | undefined
  }) {
    this.now = options.now
    this.#random = options.random
    this.#trace = options.trace
  }

  /** Makes a new process. It runs at most `longestRun` operations before another process may have its turn. */
  spawn(name: string, longestRun: number): Process {
    const process = new Process(this, name, this.#random, longestRun)
    this.processes.add(process)
    return process
  }

  /** Returns whether the present step belongs to this process, and the process is alive. */
  isRunning(process: Process): boolean {
    return this.#running === process && process.isAlive
  }

  /** Reports an event. */
  note(line: string): void {
    this.#digest.update(line).update("\n")
    this.#trace?.(`${String(this.steps).padStart(7)} ${new Date(this.now).toISOString()} ${line}`)
  }

  /** Returns a digest of all events so far. */
  digest(): string {
    return this.#digest.copy().digest("hex")
  }

  /** Calls `fire` after `millis` milliseconds of the machine's time. The returned effect cancels the call. */
  after(millis: number, fire: () => void): Effect.Effect<void> {
    const timer: Timer = { at: this.now + Math.max(millis, 0), fire }
    this.#timers.push(timer)
    return Effect.sync(() => {
      const at = this.#timers.indexOf(timer)
      if (at >= 0) this.#timers.splice(at, 1)
    })
  }

  /** Lets time pass. Timers that became due in the meantime run late. */
  pass(millis: number): void {
    this.now += millis
  }

  /** Runs the due timers. Returns whether there were any. */
  #fireDue(): boolean {
    for (let isDue = false;; isDue = true) {
      let earliest: Timer | undefined
      for (const timer of this.#timers) if (earliest === undefined || timer.at < earliest.at) earliest = timer
      if (earliest === undefined || earliest.at > this.now) return isDue
      this.#timers.splice(this.#timers.indexOf(earliest), 1)
      earliest.fire()
    }
  }

  #step(able: ReadonlyArray<Process>): void {
    const process = this.#random.pick(able)
    const [task] = process.tasks.splice(this.#random.below(process.tasks.length), 1)
    this.steps++
    this.#digest.update(process.name)
    this.#running = process
    task?.()
    this.#running = undefined
    // Sometimes the work itself takes time.
    if (this.#random.chance(0.01)) this.pass(this.#random.below(20))
  }

  /**
   * Runs until `isOver` returns true. Returns false if nothing is left to do or to wait for. Between any two steps,
   * calls `isOver` and then `between`, which may kill and stop processes and change clocks.
   */
  async run(isOver: () => boolean, between: () => void): Promise<boolean> {
    const immediate = (task: (...args: ReadonlyArray<unknown>) => void, ...args: ReadonlyArray<unknown>) => {
      if (this.#running === undefined) return realImmediate(task, ...args)
      this.#running.tasks.push(() => task(...args))
      return undefined
    }
    globalThis.setImmediate = Object.assign(immediate, realImmediate) as typeof setImmediate
    // The service measures how long statements take. On a busy machine, it would otherwise sometimes report one.
    const realNow = performance.now
    performance.now = () => this.now
    const uncount = countNative((give) => void this.after(this.#random.below(slowestAnswer), give))
    try {
      for (;;) {
        // A step may begin several requests. It is over once all of them are answered.
        while (native.pending > 0) await turn()
        if (isOver()) return true
        between()
        if (this.#fireDue()) {
          await turn() // A timer may have resolved a promise, which makes a task or a request.
          continue
        }
        const able = this.#able()
        if (able.length > 0) this.#step(able)
        else {
          await turn() // A promise that is resolved at once makes a task without any request.
          if (native.pending > 0 || this.#able().length > 0) continue
          const next = this.#nextEvent()
          if (next === Number.POSITIVE_INFINITY) return false
          this.now = next
        }
      }
    } finally {
      uncount()
      performance.now = realNow
      globalThis.setImmediate = realImmediate
    }
  }

  #able(): ReadonlyArray<Process> {
    return [...this.processes].filter(({ stoppedUntil, tasks }) => tasks.length > 0 && stoppedUntil <= this.now)
  }

  /**
   * Returns the time at which a timer is due or a stopped process continues. This time is in the future if no process
   * can run now.
   */
  #nextEvent(): number {
    let next = Number.POSITIVE_INFINITY
    for (const { at } of this.#timers) next = Math.min(next, at)
    for (const { stoppedUntil, tasks } of this.processes) if (tasks.length > 0) next = Math.min(next, stoppedUntil)
    return next
  }
}

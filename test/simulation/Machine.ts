import { Clock, Duration, Effect } from "effect"
import type { Fiber, Scheduler } from "effect"
import type { Hash } from "node:crypto"
import { createHash } from "node:crypto"
import { countNative, native } from "./Native.ts"
import type { Random } from "./Random.ts"

/*
 * One computer on which several processes run in turn, a few operations at a time, in an order that a seed decides.
 * Everything the processes wait for is a task or a timer of this machine, so nothing depends on the speed of the real
 * one. Only time, chance, the outside and the order of events are simulated. The code is the service's own.
 */

/** Milliseconds within which files and threads answer. */
const slowestAnswer = 20

const realImmediate = globalThis.setImmediate
const turn = (): Promise<void> => new Promise((resume) => void realImmediate(resume))

interface Timer {
  readonly at: number
  readonly fire: () => void
}

/** A process of the machine: its own clock, its own tasks, and an end after which nothing of it runs. */
export class Process {
  readonly name: string
  readonly clock: Clock.Clock
  /** Milliseconds its clock is ahead of the machine's. */
  skew = 0
  isAlive = true
  /** Milliseconds that a wait of its own lasts longer than requested. */
  lateness: () => number = () => 0
  /** Until when, by the machine's clock, it is stopped. */
  stoppedUntil = 0
  readonly tasks: Array<() => void> = []
  /** Called when it is killed. */
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
        // A fiber continues inside whatever wakes it: a timer, a promise, another process. Here it waits for its step.
        if (!machine.isRunning(this)) return true
        if (this.#operations-- > 0) return false
        this.#operations = random.below(longestRun)
        return true
      },
      makeDispatcher: () => dispatcher
    }
    const millis = () => machine.now + this.skew
    const wallNanos = () => BigInt(millis()) * 1_000_000n
    // Elapsed time is measured: it never goes back, whatever the clock says.
    const elapsedNanos = () => BigInt(machine.now) * 1_000_000n
    this.clock = {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: wallNanos,
      currentTimeNanos: Effect.sync(wallNanos),
      monotonicTimeNanosUnsafe: elapsedNanos,
      monotonicTimeNanos: Effect.sync(elapsedNanos),
      // Setting a clock does not change the length of a wait.
      sleep: (duration) =>
        Effect.callback((resume) =>
          machine.after(Duration.toMillis(duration) + this.lateness(), () => resume(Effect.void))
        )
    }
  }

  /** Starts a fiber of this process. */
  fork<A, E>(effect: Effect.Effect<A, E>): Fiber.Fiber<A, E> {
    return Effect.runFork(Effect.provideService(effect, Clock.Clock, this.clock), { scheduler: this.#scheduler })
  }

  /** Like kill -9: no finalizer runs, no task is left. */
  kill(): void {
    if (!this.isAlive) return
    this.isAlive = false
    this.tasks.length = 0
    this.#machine.processes.delete(this)
    for (const told of this.onKilled) told()
  }
}

/** See above. `trace` receives every event, in order. */
export class Machine {
  /** Epoch milliseconds. */
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

  /** A new process; it runs at most `longestRun` operations before another one may have its turn. */
  spawn(name: string, longestRun: number): Process {
    const process = new Process(this, name, this.#random, longestRun)
    this.processes.add(process)
    return process
  }

  /** Whether this is a step of a process that is alive. */
  isRunning(process: Process): boolean {
    return this.#running === process && process.isAlive
  }

  /** Reports an event. */
  note(line: string): void {
    this.#digest.update(line).update("\n")
    this.#trace?.(`${String(this.steps).padStart(7)} ${new Date(this.now).toISOString()} ${line}`)
  }

  /** A digest of all events so far. */
  digest(): string {
    return this.#digest.copy().digest("hex")
  }

  /** Calls `fire` after `millis` milliseconds of the machine's time; the returned effect cancels that. */
  after(millis: number, fire: () => void): Effect.Effect<void> {
    const timer: Timer = { at: this.now + Math.max(millis, 0), fire }
    this.#timers.push(timer)
    return Effect.sync(() => {
      const at = this.#timers.indexOf(timer)
      if (at >= 0) this.#timers.splice(at, 1)
    })
  }

  /** Lets time pass; timers that became due meanwhile fire late. */
  pass(millis: number): void {
    this.now += millis
  }

  /** Whether any was due. */
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
    // Work takes time, now and then.
    if (this.#random.chance(0.01)) this.pass(this.#random.below(20))
  }

  /**
   * Runs until `isOver`, which is checked between any two steps; false if nothing is left to do or to wait for.
   * `between` is called there too: it may kill, stop and change clocks.
   */
  async run(isOver: () => boolean, between: () => void): Promise<boolean> {
    const immediate = (task: (...args: ReadonlyArray<unknown>) => void, ...args: ReadonlyArray<unknown>) => {
      if (this.#running === undefined) return realImmediate(task, ...args)
      this.#running.tasks.push(() => task(...args))
      return undefined
    }
    globalThis.setImmediate = Object.assign(immediate, realImmediate) as typeof setImmediate
    const uncount = countNative((give) => void this.after(this.#random.below(slowestAnswer), give))
    try {
      for (;;) {
        // A step may begin several requests: it is over once all are answered.
        while (native.pending > 0) await turn()
        if (isOver()) return true
        between()
        if (this.#fireDue()) {
          await turn() // it may have kept a promise, which makes a task or a request
          continue
        }
        const able = this.#able()
        if (able.length > 0) this.#step(able)
        else {
          await turn() // a promise that is kept at once makes a task without any request
          if (native.pending > 0 || this.#able().length > 0) continue
          const next = this.#nextEvent()
          if (next === Number.POSITIVE_INFINITY) return false
          this.now = next
        }
      }
    } finally {
      uncount()
      globalThis.setImmediate = realImmediate
    }
  }

  #able(): ReadonlyArray<Process> {
    return [...this.processes].filter(({ stoppedUntil, tasks }) => tasks.length > 0 && stoppedUntil <= this.now)
  }

  /** When a timer is due or a stopped process goes on; in the future, where nothing is able to run. */
  #nextEvent(): number {
    let next = Number.POSITIVE_INFINITY
    for (const { at } of this.#timers) next = Math.min(next, at)
    for (const { stoppedUntil, tasks } of this.processes) if (tasks.length > 0) next = Math.min(next, stoppedUntil)
    return next
  }
}

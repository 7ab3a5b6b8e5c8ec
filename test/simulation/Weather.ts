import type { Machine, Process } from "./Machine.ts"
import type { Random } from "./Random.ts"
import type { Mishaps } from "./Store.ts"

/* Decides when faults occur, and which failures they may cause. */

const daySeconds = 86_400
const hourSeconds = 3600

/** The time after a fault in which the service must find interrupted work, take it over and start it again. */
const recoveryMillis = 30_000
/** The time after which the first processes are ready. */
const startMillis = 3000
/** The time that a process needs to drain when it is stopped. */
const drainMillis = 35_000
/** The longest delay of a wait. */
export const latestMillis = 2000
// The loops that look for work, or for the end of work, wait no longer than this.
const shortMillis = 1000

/** Returns the faults of a seed: how often each of them occurs. */
export const climateOf = (random: Random) => {
  const rate = (worst: number) => random.chance(0.4) ? 0 : worst * random.fraction()
  const climate = {
    statement: rate(0.02),
    undone: rate(0.02),
    unheard: rate(0.02),
    defect: rate(0.001),
    /** The rate of events between two steps. */
    event: rate(1 / 2000),
    malice: rate(0.2),
    mischief: rate(0.3),
    longestRun: random.pick([7, 70, 700]),
    /** Whether an account has more validations than there are slots. */
    isFlooded: random.chance(0.25),
    isUnordered: random.chance(0.5),
    late: random.chance(0.7) ? 0 : 0.3 * random.fraction()
  }
  // A delay of all processes would hide which job waits for which other one.
  const isCalm = climate.isFlooded && random.chance(0.6)
  return isCalm ? { ...climate, statement: 0, undone: 0, unheard: 0, defect: 0, event: 0 } : climate
}

/** A process that faults may affect. */
interface Struck {
  readonly process: Process
  readonly terminate: () => void
}

/** The faults of a run. */
export class Weather implements Mishaps {
  readonly faults: { [fault: string]: number } = {}
  /** How many milliseconds the clock of the host is ahead. A process that starts there gets the time of this clock. */
  hostSkew = 0
  isHealed = false
  readonly #climate: ReturnType<typeof climateOf>
  readonly #machine: Machine
  readonly #random: Random
  readonly #members: () => ReadonlyArray<Struck>
  readonly #cutPower: () => void
  readonly #spoil: (key: string) => boolean
  readonly #lose: () => boolean
  readonly #lastMishap = new Map<Process, number>()
  // A process cannot work while it is stopped, or while it waits for a stopped process that holds the lock of the
  // database.
  #stalledUntil = 0
  #lateUntil = 0
  /** The most milliseconds that any clock has been ahead. */
  #mostAhead = 0
  #troubledUntil: number

  constructor(given: {
    readonly climate: ReturnType<typeof climateOf>
    readonly machine: Machine
    readonly random: Random
    /** The live processes. */
    readonly members: () => ReadonlyArray<Struck>
    readonly cutPower: () => void
    /** Adds an unreadable job with this key. Does nothing and returns false while a transaction is open. */
    readonly spoil: (key: string) => boolean
    /**
     * Deletes an authorization of an unfinished order. Returns false if there is none, or while a transaction is open.
     */
    readonly lose: () => boolean
  }) {
    this.#climate = given.climate
    this.#machine = given.machine
    this.#random = given.random
    this.#members = given.members
    this.#cutPower = given.cutPower
    this.#spoil = given.spoil
    this.#lose = given.lose
    this.#troubledUntil = given.machine.now + startMillis
  }

  #struck(fault: string, process: Process | undefined, millis = 0): void {
    this.faults[fault] = (this.faults[fault] ?? 0) + 1
    this.#machine.note(`${process?.name ?? "machine"} ${fault}`)
    this.#troubledUntil = Math.max(this.#troubledUntil, this.#machine.now + millis + recoveryMillis)
  }

  #strikes(rate: number): boolean {
    return !this.isHealed && rate > 0 && this.#random.chance(rate)
  }

  #mishap(fault: string, process: Process): void {
    this.#lastMishap.set(process, this.#machine.steps)
    this.#struck(fault, process)
  }

  readonly statement = (process: Process): boolean => {
    if (!this.#strikes(this.#climate.statement)) return false
    this.#mishap("statement", process)
    return true
  }

  readonly defect = (process: Process): boolean => {
    if (!this.#strikes(this.#climate.defect)) return false
    this.#mishap("defect", process)
    return true
  }

  readonly commit = (process: Process): "undone" | "unheard" | undefined => {
    for (const fault of ["undone", "unheard"] as const) {
      if (!this.#strikes(this.#climate[fault])) continue
      this.#mishap(`commit ${fault}`, process)
      return fault
    }
    return undefined
  }

  readonly arrange = <A>(rows: ReadonlyArray<A>): ReadonlyArray<A> => {
    if (!this.#climate.isUnordered || this.isHealed || rows.length < 2) return rows
    this.faults["rows shuffled"] = (this.faults["rows shuffled"] ?? 0) + 1
    const left = [...rows]
    return rows.flatMap(() => left.splice(this.#random.below(left.length), 1))
  }

  /** Returns by how many milliseconds the next wait of a process, which should last `millis`, is too long. */
  readonly lateness = (millis: number): number => {
    if (!this.#strikes(this.#climate.late)) return 0
    this.faults["wait late"] = (this.faults["wait late"] ?? 0) + 1
    const late = this.#random.between(1, latestMillis)
    if (millis <= shortMillis) this.#lateUntil = Math.max(this.#lateUntil, this.#machine.now + millis + late)
    return late
  }

  /** Records a reload while requests were under way. It excuses nothing. */
  reloaded(process: Process): void {
    this.faults["reloaded"] = (this.faults["reloaded"] ?? 0) + 1
    this.#machine.note(`${process.name} reloaded`)
  }

  /** Returns whether a short wait that lasts too long may still be in progress. */
  isLate(): boolean {
    return this.#machine.now < this.#lateUntil
  }

  /**
   * Returns the time of all clocks in milliseconds, or undefined while they differ or while a fault may still delay
   * work.
   */
  calmClock(): number | undefined {
    if (this.#machine.now < this.#troubledUntil) return undefined
    const isOne = this.#members().every(({ process }) => process.skew === this.hostSkew)
    return isOne ? this.#machine.now + this.hostSkew : undefined
  }

  /** Returns the time of the clock that is furthest ahead, in milliseconds. */
  latestClock(): number {
    return this.#machine.now + Math.max(this.hostSkew, ...this.#members().map(({ process }) => process.skew))
  }

  /** Returns the latest time that any clock of the run can have shown so far, in milliseconds. */
  furthestClock(): number {
    return this.#machine.now + this.#mostAhead
  }

  /** Returns whether a fault may have caused a failure. Otherwise the service caused the failure. */
  excuses(process: Process, begun: number): boolean {
    return this.#machine.now <= this.#stalledUntil || (this.#lastMishap.get(process) ?? -1) >= begun - 2000
  }

  #stalls(millis: number): void {
    this.#stalledUntil = Math.max(this.#stalledUntil, this.#machine.now + millis + recoveryMillis)
  }

  #setSkew(process: Process, skew: number): void {
    process.skew = skew
    this.#mostAhead = Math.max(this.#mostAhead, skew)
  }

  #jump(process: Process): void {
    const millis = this.#random.pick([600, hourSeconds, 6 * hourSeconds, daySeconds]) * 1000
    const isAhead = this.#random.chance(0.5)
    // The clock never goes back to a time before the CA's certificate is valid.
    const set = (skew: number) => Math.max(-daySeconds * 1000, Math.min(daySeconds * 1000, skew))
    const jumped = (skew: number) => set(isAhead ? skew + millis : skew - millis)
    const isHost = this.#random.chance(0.5)
    this.#struck(`clock jumped ${isAhead ? "ahead" : "back"}`, isHost ? undefined : process)
    if (!isHost) this.#setSkew(process, jumped(process.skew))
    else {
      this.hostSkew = jumped(this.hostSkew)
      this.#mostAhead = Math.max(this.#mostAhead, this.hostSkew)
      for (const member of this.#members()) this.#setSkew(member.process, this.hostSkew)
    }
  }

  /** Sometimes causes a fault, between two steps. */
  readonly between = (): void => {
    if (!this.#strikes(this.#climate.event)) return
    const living = this.#members()
    if (living.length === 0) return
    const member = this.#random.pick(living)
    const { process } = member
    switch (
      this.#random.pick(["kill", "kill", "stop", "terminate", "skew", "leap", "jump", "jump", "cut", "spoil", "lose"])
    ) {
      case "kill":
        this.#struck("killed", process)
        return process.kill()
      case "stop": {
        const millis = this.#random.between(100, 200_000)
        this.#struck("stopped", process, millis)
        process.stoppedUntil = this.#machine.now + millis
        return this.#stalls(millis)
      }
      case "terminate":
        this.#struck("terminated", process, drainMillis)
        return member.terminate()
      case "skew":
        this.#struck("clock skewed", process)
        return this.#setSkew(process, this.#random.between(-300_000, 300_000))
      case "jump":
        return this.#jump(process)
      case "cut":
        this.#struck("power cut", undefined)
        // No process notices this change, because the clock is correct only for processes that start later.
        if (this.#random.chance(0.5)) this.hostSkew = 0
        return this.#cutPower()
      case "spoil": {
        const key = Array.from({ length: 32 }, () => this.#random.below(16).toString(16)).join("")
        if (this.#spoil(key)) this.#struck("row spoiled", undefined)
        return
      }
      case "lose":
        if (this.#lose()) this.#struck("authorization lost", undefined)
        return
      case "leap":
        if (!this.#random.chance(0.2)) return
        this.#machine.pass(this.#random.pick([60, hourSeconds, daySeconds, 4 * daySeconds]) * 1000)
        this.#struck("time leapt", undefined)
        return this.#stalls(0)
    }
  }

  /** Ends all faults, and corrects every clock. */
  heal(): void {
    this.isHealed = true
    this.hostSkew = 0
    this.#troubledUntil = this.#machine.now + recoveryMillis
    for (const { process } of this.#members()) {
      process.skew = 0
      process.stoppedUntil = 0
    }
  }
}

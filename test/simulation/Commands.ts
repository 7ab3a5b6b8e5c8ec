import { Cause, Effect, Exit, Layer, Semaphore } from "effect"
import { Entropy } from "../../src/crypto/Entropy.ts"
import { knownKinds } from "../../src/domain/words/JobKind.ts"
import { Queue } from "../../src/engine/queue/Queue.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import { EventLog } from "../../src/engine/telemetry/EventLog.ts"
import { Notifier } from "../../src/services/notify/Notifier.ts"
import type { Config } from "../../src/settings/AppConfig.ts"
import type { Machine, Process } from "./Machine.ts"
import type { Store } from "./Store.ts"
import { plantedDefect } from "./Store.ts"

/* The commands of operators. Every act of an operator is a command, which is a process of its own. */

/** An act of an operator. It may fail for a fault of the database, and for nothing else. */
export type Act<E> = Effect.Effect<void, E, Database | Entropy | Notifier | Queue>

/** The operator who works at the keyboard. */
export const atKeyboard = { kind: "cli", id: "operator" } as const

/** What the commands of an operator work with. */
export interface Desk {
  /** The name of the processes. A number is added to it. */
  readonly name: string
  readonly seed: string
  readonly machine: Machine
  readonly store: Store
  readonly config: Config
  /** How many milliseconds the clock of the host is ahead. */
  readonly skew: () => number
  readonly violated: (what: string) => void
}

/** Runs the commands of one operator, one at a time. */
export class Commands {
  readonly #alive = new Set<Process>()
  readonly #hands = Semaphore.makeUnsafe(1)
  readonly #at: Desk
  #started = 0

  constructor(at: Desk) {
    this.#at = at
  }

  /** Ends all commands, as a power cut does. */
  kill(): void {
    for (const command of this.#alive) command.kill()
  }

  /** Runs an act in a process of its own, after any other act. Returns after the end of the process. */
  run<E extends { readonly _tag: string }>(act: Act<E>): Effect.Effect<void> {
    return this.#hands.withPermit(Effect.callback((resume) => {
      const { config, machine, name, seed, skew, store, violated } = this.#at
      const command = machine.spawn(`${name}.${this.#started++}`, 3000)
      command.skew = skew()
      this.#alive.add(command)
      command.onKilled.add(() => {
        this.#alive.delete(command)
        resume(Effect.void)
      })
      const services = Notifier.layer(() => config).pipe(
        Layer.provideMerge(Queue.layer({ kinds: knownKinds, config: () => config })),
        Layer.provideMerge(Layer.merge(
          Entropy.layerSeeded(`${seed}/${command.name}`),
          Layer.effect(Database, store.driverOf(command))
        )),
        Layer.provideMerge(Layer.succeed(EventLog, {
          enabled: () => true,
          write: ({ event }) => machine.note(`${command.name} ${event}`)
        }))
      )
      command.fork(Effect.provide(act, services)).addObserver((exit) => {
        const isExcused = Exit.isSuccess(exit) ||
          exit.cause.reasons.every((reason) =>
            reason._tag === "Fail"
              ? reason.error._tag === "StorageFailed"
              : Cause.pretty(exit.cause).includes(plantedDefect)
          )
        if (!isExcused && command.isAlive) violated(`${command.name} failed: ${Cause.pretty(exit.cause)}`)
        command.kill()
      })
    }))
  }
}

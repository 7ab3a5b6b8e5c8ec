import * as Effect from "effect/Effect"
import { CommandFailed } from "./CommandFailed.ts"
import { Host } from "./Host.ts"

const codes = { SIGINT: 130, SIGTERM: 143 } as const

/**
 * Runs a program that may take a long time. A signal interrupts the program, and its finalizers run to their end. Then
 * the command ends with the exit code of the signal and the sentence of `left`, which says what was done and what
 * remains.
 */
export const untilStopped = <A, E, R>(
  program: Effect.Effect<A, E, R>,
  left: Effect.Effect<string>
): Effect.Effect<A, E | CommandFailed, R | Host> =>
  Effect.gen(function*() {
    const { process } = yield* Host
    const ended = yield* Effect.raceFirst(
      Effect.map(program, (value) => ({ value })),
      process.stopSignal
    )
    if (typeof ended !== "string") return ended.value
    return yield* new CommandFailed({ code: codes[ended], message: yield* left })
  })

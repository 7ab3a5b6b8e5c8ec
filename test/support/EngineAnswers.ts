import { Cause, Effect, Exit } from "effect"
import type { Connection } from "../../src/engine/sql/Driver.ts"

/* The results of an engine in a form in which two connections can be compared. */

/** A statement in the form of the engine. */
export type Sent = readonly [text: string, params?: ReadonlyArray<unknown>]

/** Returns the rows of each statement, or the code and the text of the engine's error. */
export const answersTo =
  (statements: ReadonlyArray<Sent>) =>
  (connection: Pick<Connection, "execute">): Effect.Effect<ReadonlyArray<unknown>> =>
    Effect.forEach(
      statements,
      ([text, params = []]) =>
        Effect.map(Effect.exit(connection.execute(text, params)), (exit): unknown => {
          if (Exit.isSuccess(exit)) return exit.value
          const { cause } = Cause.squash(exit.cause) as { readonly cause: Error & { readonly code?: string } }
          // Connections are free to choose names for their prepared statements, so the name is replaced.
          return [cause.name, cause.code, cause.message.replace(/(?<=prepared statement )"\w*"/, "of some name")]
        })
    )

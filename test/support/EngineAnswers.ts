import { Cause, Effect, Exit } from "effect"
import type { Connection } from "../../src/engine/sql/Driver.ts"

/* What an engine answers, in a form in which two connections to it can be compared. */

/** A statement as an engine takes it. */
export type Sent = readonly [text: string, params?: ReadonlyArray<unknown>]

/** The rows of each statement, or the code and text of the engine's error. */
export const answersTo =
  (statements: ReadonlyArray<Sent>) =>
  (connection: Pick<Connection, "execute">): Effect.Effect<ReadonlyArray<unknown>> =>
    Effect.forEach(
      statements,
      ([text, params = []]) =>
        Effect.map(Effect.exit(connection.execute(text, params)), (exit): unknown => {
          if (Exit.isSuccess(exit)) return exit.value
          const { cause } = Cause.squash(exit.cause) as { readonly cause: Error & { readonly code?: string } }
          // Connections name their prepared statements as they like.
          return [cause.name, cause.code, cause.message.replace(/(?<=prepared statement )"\w*"/, "of some name")]
        })
    )

import * as Data from "effect/Data"

/** The engine refused a statement, or could not be asked. */
export class SqlError extends Data.TaggedError("SqlError")<{ readonly cause: unknown; readonly message?: string }> {}

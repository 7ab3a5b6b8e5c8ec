import * as Data from "effect/Data"

/** The engine refused a statement, or could not be asked. */
export class SqlError extends Data.TaggedError("SqlError")<{ readonly cause: unknown; readonly message?: string }> {}

/** The cause of a failure: the time for a read, or for the wait for a connection, was up. */
export class Late extends Error {}

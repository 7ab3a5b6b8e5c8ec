import { Data, Effect } from "effect"
import * as fs from "node:fs/promises"
import { codeOf } from "./Exhausted.ts"

/** A file that is named by the configuration cannot be read. */
export class FileUnreadable
  extends Data.TaggedError("FileUnreadable")<{ readonly path: string; readonly code: string }> {
  override get message(): string {
    return `${this.path} cannot be read (${this.code})`
  }
}

/** The text of a file. */
export const readText = (path: string): Effect.Effect<string, FileUnreadable> =>
  Effect.tryPromise({
    try: () => fs.readFile(path, "utf8"),
    catch: (cause) => new FileUnreadable({ path, code: codeOf(cause) ?? "unknown" })
  })

/** Whether a file is there and this process may run it. */
export const isExecutable = (path: string): Effect.Effect<boolean> =>
  Effect.tryPromise(async () => (await fs.stat(path)).isFile() && (await fs.access(path, fs.constants.X_OK), true))
    .pipe(
      Effect.orElseSucceed(() => false)
    )

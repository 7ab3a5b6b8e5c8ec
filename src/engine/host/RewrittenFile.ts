import * as Effect from "effect/Effect"
import { lstat } from "node:fs/promises"
import type { NewFile } from "./KeyFile.ts"
import { attempt, FileUnusable, replaceFile } from "./KeyFile.ts"

/**
 * Replaces the content of a file in one step. The owner stays, and so do the permissions unless `mode` is given. A
 * symbolic link fails with `not_a_file`, because another program manages the file to which it leads.
 */
export const rewriteFile = Effect.fnUntraced(function*(
  file: Pick<NewFile, "path" | "content" | "suffix"> & Partial<Pick<NewFile, "mode">>
) {
  const { gid, mode, uid } = yield* attempt(file.path, () => lstat(file.path)).pipe(
    Effect.filterOrFail((stats) => stats.isFile(), () => new FileUnusable({ path: file.path, reason: "not_a_file" }))
  )
  yield* replaceFile({ ...file, mode: file.mode ?? mode & 0o7777, owner: { uid, gid } })
})

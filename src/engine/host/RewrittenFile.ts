import * as Effect from "effect/Effect"
import { constants } from "node:fs"
import { lstat, open, truncate } from "node:fs/promises"
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

/**
 * Writes the content of a file that exists and is empty. Its owner and its permissions stay, and nobody needs the right
 * to make files in its directory. Fails with `exists` if the file has a content.
 */
export const fillEmptyFile = Effect.fnUntraced(function*({ content, path }: Pick<NewFile, "path" | "content">) {
  yield* Effect.acquireUseRelease(
    attempt(path, () => open(path, constants.O_WRONLY | constants.O_NOFOLLOW)),
    (file) =>
      Effect.gen(function*() {
        const stats = yield* attempt(path, () => file.stat())
        if (!stats.isFile()) return yield* new FileUnusable({ path, reason: "not_a_file" })
        if (stats.size > 0) return yield* new FileUnusable({ path, reason: "exists" })
        yield* attempt(path, async () => {
          await file.writeFile(content)
          await file.sync()
        })
      }),
    (file) => Effect.ignore(Effect.tryPromise(() => file.close()))
  )
}, Effect.uninterruptible)

/** Removes the content of a file, which stays. */
export const emptyFile = (path: string): Effect.Effect<void, FileUnusable> => attempt(path, () => truncate(path))

/** Returns whether a file exists and is empty. */
export const isEmptyFile = (path: string): Effect.Effect<boolean> =>
  Effect.match(attempt(path, () => lstat(path)), {
    onFailure: () => false,
    onSuccess: (stats) => stats.isFile() && stats.size === 0
  })

import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Stats } from "node:fs"
import { constants } from "node:fs"
import type { FileHandle } from "node:fs/promises"
import { link, lstat, mkdir, open, readdir, rename, stat, unlink } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { currentMillis } from "../Time.ts"

/**
 * Reads and writes files that must never be incomplete, must never overwrite another file, and must never be readable
 * by others: CA keys and certificates, TLS keys and certificates, exported lists
 * (docs/contribute/decisions/local-ca.md, "Files").
 */

/** Why a file could not be read or written. */
export type FileReason = "absent" | "exists" | "denied" | "not_a_file" | "too_large" | "not_text" | "empty" | "failed"

/**
 * An operation on a file failed. `path` is the path that the caller gave. If the `reason` is "failed", `cause` explains
 * it.
 */
export class FileUnusable extends Data.TaggedError("FileUnusable")<{
  readonly path: string
  readonly reason: FileReason
  readonly cause?: unknown
}> {
  override get message(): string {
    return `${this.path}: ${said(this)}`
  }
}

/** Returns the reason in a few words, for a sentence about the file. */
export const said = ({ cause, reason }: FileUnusable): string => {
  const code = codeOf(cause)
  const words = byErrno[code] ?? REASONS[reason]
  return code !== "" && (code in byErrno || reason === "failed") ? `${words} (${code})` : words
}

/** The words for errors that come from the host, by error code. */
const byErrno: { readonly [code: string]: string } = {
  EDQUOT: "the disk quota is used up",
  EIO: "the disk failed",
  EMFILE: "this process has too many files open",
  ENFILE: "this host has too many files open",
  ENOSPC: "no space is left on its file system",
  EROFS: "its file system is read-only"
}

const REASONS: { readonly [R in FileReason]: string } = {
  absent: "no such file or directory",
  exists: "exists already and is not overwritten",
  denied: "permission denied",
  not_a_file: "not a regular file",
  too_large: "too large",
  not_text: "not UTF-8 text",
  empty: "empty",
  failed: "input or output failed"
}

const byCode: { readonly [code: string]: FileReason } = {
  ENOENT: "absent",
  ENOTDIR: "absent",
  EEXIST: "exists",
  EACCES: "denied",
  EPERM: "denied",
  EROFS: "denied",
  EISDIR: "not_a_file",
  ELOOP: "not_a_file"
}

const codeOf = (cause: unknown): string =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string" ? cause.code : ""

/** Runs a call about a file. A failure of the call becomes a {@link FileUnusable} that names the file. */
export const attempt = <A>(path: string, body: () => Promise<A>): Effect.Effect<A, FileUnusable> =>
  Effect.tryPromise({
    try: body,
    catch: (cause) => new FileUnusable({ path, reason: byCode[codeOf(cause)] ?? "failed", cause })
  })

const withFile = <A>(
  path: string,
  flags: number,
  mode: number,
  use: (file: FileHandle) => Effect.Effect<A, FileUnusable>,
  toldAs = path
): Effect.Effect<A, FileUnusable> =>
  Effect.acquireUseRelease(
    attempt(toldAs, () => open(path, flags, mode)),
    use,
    (file) => Effect.ignore(Effect.tryPromise(() => file.close())) // the content has already been synced
  )

/** One file to be written. */
export interface NewFile {
  readonly path: string
  readonly content: string | Uint8Array
  /** The permission bits, such as 0o600. The umask of the process does not change them. */
  readonly mode: number
  /** The owner. Absent for the user of the process. */
  readonly owner?: { readonly uid: number; readonly gid: number }
  /**
   * A string that nobody can guess. It is part of the name of the file until the file is complete, so it must have only
   * characters that are allowed in file names.
   */
  readonly suffix: string
}

/**
 * Writes a file that must not exist yet. Fails with `exists` if the name is already used, even by a dangling symbolic
 * link. The file appears under its name only when it is complete and synced.
 */
export const writeNewFile = (file: NewFile): Effect.Effect<void, FileUnusable> => writeNewFiles([file])

/**
 * Writes several files like {@link writeNewFile}. They appear in the given order, after all of them are complete on the
 * disk. If one of them cannot appear, those before it are removed, so that two processes never leave a mixture of
 * files. Only a crash can leave some of the files without the others.
 */
export const writeNewFiles = Effect.fnUntraced(
  function*(files: ReadonlyArray<NewFile>): Effect.fn.Return<void, FileUnusable> {
    const staged: Array<string> = []
    const published: Array<string> = []
    const write = Effect.gen(function*() {
      for (const file of files) {
        yield* removeLeftovers(file.path)
        yield* stage(file, staged)
      }
      for (const file of files) {
        yield* publish(file)
        published.push(file.path)
        yield* syncDirectory(file.path)
      }
    })
    yield* write.pipe(
      Effect.tapError(() => removeAll(published)),
      Effect.ensuring(Effect.suspend(() => removeAll(staged)))
    )
  },
  Effect.uninterruptible
)

/** Writes a file in one step, and replaces a file that has the same name. A symbolic link is replaced, not followed. */
export const replaceFile = Effect.fnUntraced(
  function*(file: NewFile): Effect.fn.Return<void, FileUnusable> {
    const staged: Array<string> = []
    const write = Effect.gen(function*() {
      yield* removeLeftovers(file.path)
      yield* stage(file, staged)
      yield* attempt(file.path, () => rename(stagedPath(file), file.path))
      yield* syncDirectory(file.path)
    })
    yield* Effect.ensuring(write, Effect.suspend(() => removeAll(staged)))
  },
  Effect.uninterruptible
)

/** Makes a folder that only its owner may enter, unless there is a folder of this name. */
export const makeFolder = (path: string): Effect.Effect<void, FileUnusable> =>
  Effect.catchIf(
    attempt(path, () => mkdir(path, 0o700)),
    ({ reason }) => reason === "exists",
    () =>
      Effect.flatMap(
        attempt(path, () => stat(path)),
        (stats) => stats.isDirectory() ? Effect.void : Effect.fail(new FileUnusable({ path, reason: "exists" }))
      )
  )

const stagedPath = ({ path, suffix }: NewFile): string => join(dirname(path), `.${basename(path)}.${suffix}`)

const leftoverMillis = 60_000

/**
 * Removes the copies that a killed process left beside a file. Such a copy never got its final name, and may contain a
 * key. A copy that is younger than a minute stays, because it may belong to a running process. If a copy cannot be
 * removed, the next call tries again.
 */
export const removeLeftovers = (path: string): Effect.Effect<void> =>
  Effect.flatMap(currentMillis, (now) =>
    Effect.ignore(Effect.tryPromise(async () => {
      const prefix = `.${basename(path)}.`
      for (const name of await readdir(dirname(path))) {
        if (!name.startsWith(prefix) || !TOKEN.test(name.slice(prefix.length))) continue
        const leftover = join(dirname(path), name)
        const stats = await lstat(leftover)
        if (stats.isFile() && now - stats.mtimeMs > leftoverMillis) await unlink(leftover)
      }
    })))

/** The form of `Entropy.token`. Such tokens are the suffixes of staged files. */
const TOKEN = /^[\w-]{43}$/

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = constants

/**
 * Writes the content to a file beside the final place, and adds the path of this file to `staged`. The caller removes
 * the file.
 */
const stage = (file: NewFile, staged: Array<string>): Effect.Effect<void, FileUnusable> =>
  withFile(
    stagedPath(file),
    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
    file.mode,
    (handle) => {
      staged.push(stagedPath(file))
      return attempt(file.path, async () => {
        if (file.owner !== undefined) await handle.chown(file.owner.uid, file.owner.gid)
        await handle.chmod(file.mode)
        await handle.writeFile(file.content)
        await handle.sync()
      })
    },
    file.path
  )

/** Makes an empty file that must not exist yet. Fails with `exists` if the name is already used. */
export const claimName = (path: string, mode: number): Effect.Effect<void, FileUnusable> =>
  withFile(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode, () => Effect.void)

/** Gives the staged file its name by a hard link. Unlike a rename, a hard link fails if the name is already used. */
const publish = (file: NewFile): Effect.Effect<void, FileUnusable> =>
  Effect.catchIf(
    attempt(file.path, () => link(stagedPath(file), file.path)),
    ({ cause }) => NO_LINKS.has(codeOf(cause)),
    () =>
      // This file system has no hard links. So the name is claimed by a new empty file, and then the staged file is
      // renamed over it.
      Effect.andThen(
        claimName(file.path, file.mode),
        Effect.tapError(
          attempt(file.path, () => rename(stagedPath(file), file.path)),
          () => removeAll([file.path])
        )
      )
  )

const NO_LINKS = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"])

const syncDirectory = (path: string): Effect.Effect<void, FileUnusable> =>
  withFile(dirname(path), O_RDONLY | O_DIRECTORY, 0, (handle) => attempt(dirname(path), () => handle.sync()))

/** Removes files that this process made. It does not matter if they are already gone. */
const removeAll = (paths: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.forEach(paths, (path) => Effect.ignore(attempt(path, () => unlink(path))), { discard: true })

/** Removes a file if it exists. If it cannot be removed, it stays. */
export const removeFile = (path: string): Effect.Effect<void> => removeAll([path])

/** The content of a text file. */
export interface ReadFile {
  readonly text: string
  /**
   * Whether users other than the owner have any permission. For a certificate this does no harm, but for a key it
   * causes a warning.
   */
  readonly permissive: boolean
}

/**
 * Returns a text that changes when the file is changed or another file gets its name. The text is empty if there is no
 * file.
 */
export const stampOf = (path: string): Effect.Effect<string> =>
  Effect.tryPromise(() => lstat(path, { bigint: true })).pipe(
    Effect.map(({ ctimeNs, ino, mtimeNs, size }) => `${ino} ${size} ${mtimeNs} ${ctimeNs}`),
    Effect.orElseSucceed(() => "")
  )

/** Returns whether a name is used, even by a dangling symbolic link. Returns true if this cannot be determined. */
export const isTaken = (path: string): Effect.Effect<boolean> =>
  Effect.match(attempt(path, () => lstat(path)), {
    onFailure: ({ reason }) => reason !== "absent",
    onSuccess: () => true
  })

const MAX_BYTES = 1024 * 1024

/** Reads a file of at most `maxBytes` octets, by default one mebibyte. Symbolic links are followed. */
export const readOctets = (
  path: string,
  maxBytes = MAX_BYTES
): Effect.Effect<{ readonly octets: Buffer; readonly permissive: boolean }, FileUnusable> =>
  // Without O_NONBLOCK, a named pipe without a writer would block a thread forever.
  withFile(path, O_RDONLY | constants.O_NONBLOCK, 0, (handle) =>
    Effect.gen(function*() {
      const stats = yield* attempt<Stats>(path, () => handle.stat())
      if (!stats.isFile()) return yield* new FileUnusable({ path, reason: "not_a_file" })
      if (stats.size > maxBytes) return yield* new FileUnusable({ path, reason: "too_large" })
      return { octets: yield* attempt(path, () => handle.readFile()), permissive: (stats.mode & 0o077) !== 0 }
    }))

/**
 * Reads a UTF-8 text of at most `maxBytes` octets, by default one mebibyte. Symbolic links are followed, because secret
 * stores mount files as symbolic links.
 */
export const readTextFile = (path: string, maxBytes = MAX_BYTES): Effect.Effect<ReadFile, FileUnusable> =>
  Effect.flatMap(readOctets(path, maxBytes), ({ octets, permissive }) =>
    Effect.try({
      try: () => ({ text: utf8.decode(octets), permissive }),
      catch: () => new FileUnusable({ path, reason: "not_text" })
    }))

/** The longest secret. Tokens of other services have up to a few kilobytes. */
const maxSecretBytes = 16 * 1024

/**
 * Reads a secret that has a file of its own, such as a passphrase. White space at the end is not part of the secret,
 * because editors and shells write a line end there. A file without a secret fails with `empty`.
 */
export const readSecretFile = (path: string): Effect.Effect<ReadFile, FileUnusable> =>
  readTextFile(path, maxSecretBytes).pipe(
    Effect.map(({ permissive, text }) => ({ permissive, text: text.trimEnd() })),
    Effect.filterOrFail(({ text }) => text !== "", () => new FileUnusable({ path, reason: "empty" }))
  )

const utf8 = new TextDecoder("utf-8", { fatal: true })

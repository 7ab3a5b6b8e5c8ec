import { Clock, Data, Effect } from "effect"
import type { Stats } from "node:fs"
import { constants } from "node:fs"
import type { FileHandle } from "node:fs/promises"
import { link, lstat, open, readdir, rename, unlink } from "node:fs/promises"
import { basename, dirname, join } from "node:path"

/**
 * Files that must never be half there, never land on another file and never be readable by others: CA keys and
 * certificates, TLS pairs, exported CRLs (docs/decisions/local-ca.md, "Files").
 */

/** Why a file could not be read or written. */
export type FileReason = "absent" | "exists" | "denied" | "not_a_file" | "too_large" | "not_text" | "failed"

/** A file operation that did not happen. `path` is as given; `reason` "failed" is explained by `cause`. */
export class FileUnusable extends Data.TaggedError("FileUnusable")<{
  readonly path: string
  readonly reason: FileReason
  readonly cause?: unknown
}> {
  override get message(): string {
    return `${this.path}: ${said(this)}`
  }
}

/** The reason in a few words, for a sentence about the file. */
export const said = ({ cause, reason }: FileUnusable): string => {
  const code = codeOf(cause)
  const words = byErrno[code] ?? REASONS[reason]
  return code !== "" && (code in byErrno || reason === "failed") ? `${words} (${code})` : words
}

/** What the host lacks, where that is it. */
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

const attempt = <A>(path: string, body: () => Promise<A>): Effect.Effect<A, FileUnusable> =>
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
    (file) => Effect.ignore(Effect.tryPromise(() => file.close())) // what was written has been synced
  )

/** One file to be written. */
export interface NewFile {
  readonly path: string
  readonly content: string | Uint8Array
  /** Permission bits, such as 0o600; the process's umask does not change them. */
  readonly mode: number
  /** Random text of file name characters, unguessable; names the file until it is complete. */
  readonly suffix: string
}

/**
 * Writes a file that must not exist yet; `exists` otherwise, whatever is there, a dangling symbolic link included. It
 * appears under its name complete and synced, or not at all.
 */
export const writeNewFile = (file: NewFile): Effect.Effect<void, FileUnusable> => writeNewFiles([file])

/**
 * The same for several files, which appear in the order given after all of them are complete on disk. When one cannot
 * appear, those before it are taken back, so that two processes never leave a mixture; only a crash leaves a part.
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

/** Writes a file in place of whatever has its name, in one step; a symbolic link is replaced, not followed. */
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

const stagedPath = ({ path, suffix }: NewFile): string => join(dirname(path), `.${basename(path)}.${suffix}`)

const leftoverMillis = 60_000

/**
 * Takes away what a killed process has left beside a file: a copy that never got its name, and may hold a key. One that is
 * younger than a minute may be somebody's at work; what cannot be taken away now is met again.
 */
export const removeLeftovers = (path: string): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.ignore(Effect.tryPromise(async () => {
      const prefix = `.${basename(path)}.`
      for (const name of await readdir(dirname(path))) {
        if (!name.startsWith(prefix) || !TOKEN.test(name.slice(prefix.length))) continue
        const leftover = join(dirname(path), name)
        const stats = await lstat(leftover)
        if (stats.isFile() && now - stats.mtimeMs > leftoverMillis) await unlink(leftover)
      }
    })))

/** `Entropy.token`, which names what is staged. */
const TOKEN = /^[\w-]{43}$/

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = constants

/** Writes the content beside its place. What was created is put into `staged`, to be removed by the caller. */
const stage = (file: NewFile, staged: Array<string>): Effect.Effect<void, FileUnusable> =>
  withFile(
    stagedPath(file),
    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
    file.mode,
    (handle) => {
      staged.push(stagedPath(file))
      return attempt(file.path, async () => {
        await handle.chmod(file.mode)
        await handle.writeFile(file.content)
        await handle.sync()
      })
    },
    file.path
  )

/** Makes an empty file that must not exist yet; `exists` otherwise. */
export const claimName = (path: string, mode: number): Effect.Effect<void, FileUnusable> =>
  withFile(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode, () => Effect.void)

/** A hard link fails where a name is taken, which a rename would not. */
const publish = (file: NewFile): Effect.Effect<void, FileUnusable> =>
  Effect.catchIf(
    attempt(file.path, () => link(stagedPath(file), file.path)),
    ({ cause }) => NO_LINKS.has(codeOf(cause)),
    () =>
      // No hard links on this file system: claim the name with an empty file of our own, then rename over that.
      Effect.zipRight(
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

/** Takes away files of our own that may already be gone. */
const removeAll = (paths: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.forEach(paths, (path) => Effect.ignore(attempt(path, () => unlink(path))), { discard: true })

/** A text file as read. */
export interface ReadFile {
  readonly text: string
  /** Group or world may read it: fine for a certificate, `local_ca_key_permissive` for a key. */
  readonly permissive: boolean
}

/** What tells whether a name still holds the same file, untouched; empty when it holds none. */
export const stampOf = (path: string): Effect.Effect<string> =>
  Effect.tryPromise(() => lstat(path, { bigint: true })).pipe(
    Effect.map(({ ctimeNs, ino, mtimeNs, size }) => `${ino} ${size} ${mtimeNs} ${ctimeNs}`),
    Effect.orElseSucceed(() => "")
  )

const MAX_BYTES = 1024 * 1024

/** Reads a UTF-8 text, by default of at most one mebibyte. Symbolic links are followed: secret stores mount files so. */
export const readTextFile = (path: string, maxBytes = MAX_BYTES): Effect.Effect<ReadFile, FileUnusable> =>
  // O_NONBLOCK keeps a pipe with nobody at its other end from holding a thread for ever.
  withFile(path, O_RDONLY | constants.O_NONBLOCK, 0, (handle) =>
    Effect.gen(function*() {
      const stats = yield* attempt<Stats>(path, () => handle.stat())
      if (!stats.isFile()) return yield* new FileUnusable({ path, reason: "not_a_file" })
      if (stats.size > maxBytes) return yield* new FileUnusable({ path, reason: "too_large" })
      const octets = yield* attempt(path, () => handle.readFile())
      const text = yield* Effect.try({
        try: () => utf8.decode(octets),
        catch: () => new FileUnusable({ path, reason: "not_text" })
      })
      return { text, permissive: (stats.mode & 0o044) !== 0 }
    }))

const utf8 = new TextDecoder("utf-8", { fatal: true })

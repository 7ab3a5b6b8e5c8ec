import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as nodePath from "node:path"
import { codeOf } from "./Exhausted.ts"

/** A text file cannot be read. */
export class FileUnreadable extends Data.TaggedError("FileUnreadable")<{
  readonly path: string
  /** What is wrong with the file: the rest of a sentence that begins with its path. */
  readonly reason: string
  /** The system's error code. Absent if the octets could be read but are not UTF-8 text. */
  readonly code?: string
}> {
  override get message(): string {
    return `${this.path} ${this.reason}`
  }
}

/** Returns why the entries of a folder cannot be read. */
const folderReasonOf = (code: string): string =>
  code === "ENOENT" || code === "ENOTDIR" ? "is no folder" : reasonOf(code)

const reasonOf = (code: string): string => code === "EISDIR" ? "is a directory" : `cannot be read (${code})`

const attempt = <A>(path: string, body: () => Promise<A>): Effect.Effect<A, FileUnreadable> =>
  Effect.tryPromise({
    try: body,
    catch: (cause) => {
      const code = codeOf(cause) ?? "unknown"
      return new FileUnreadable({ path, reason: reasonOf(code), code })
    }
  })

const pipeSeconds = 10
const millisBetweenReads = 20
const mostAtOnce = 65_536
const mostOfPipe = 16 * 1024 * 1024

/**
 * Reads a pipe until its writer closes it, or a device until its end. A pipe is how some programs pass a file that they
 * have decrypted. It may have no writer, or one that writes nothing. A device may have no end.
 */
const readPipe = Effect.fnUntraced(
  function*(path: string, file: fs.FileHandle, isPipe: boolean): Effect.fn.Return<Uint8Array, FileUnreadable> {
    const read: Array<Uint8Array> = []
    for (let length = 0; length <= mostOfPipe;) {
      const buffer = Buffer.alloc(mostAtOnce)
      // Undefined if nothing was written yet, and 0 at the end or if there is no writer.
      const octets = yield* Effect.catchIf(
        attempt(
          path,
          (): Promise<number | undefined> => file.read(buffer, 0, mostAtOnce).then((done) => done.bytesRead)
        ),
        ({ code }) => code === "EAGAIN",
        () => Effect.undefined
      )
      if (octets === 0 && (!isPipe || length > 0)) return Buffer.concat(read)
      if (octets === undefined || octets === 0) yield* Effect.sleep(millisBetweenReads)
      else {
        read.push(buffer.subarray(0, octets))
        length += octets
      }
    }
    return yield* new FileUnreadable({ path, reason: `has more than ${mostOfPipe} octets` })
  }
)

/**
 * Reads the octets of a file. A pipe must be written within some seconds. A read that waited for its writer in the
 * system would hold a thread of the runtime, and then the process could neither go on nor end.
 */
export const readOctets = (path: string): Effect.Effect<Uint8Array, FileUnreadable> =>
  Effect.acquireUseRelease(
    attempt(path, () => fs.open(path, constants.O_RDONLY | constants.O_NONBLOCK)),
    (file) =>
      Effect.flatMap(attempt(path, () => file.stat()), (stats) =>
        stats.isFIFO() || stats.isCharacterDevice()
          ? Effect.timeoutOrElse(readPipe(path, file, stats.isFIFO()), {
            duration: `${pipeSeconds} seconds`,
            orElse: () =>
              Effect.fail(
                new FileUnreadable({ path, reason: `is a pipe that was not written within ${pipeSeconds} s` })
              )
          })
          : attempt(path, () => file.readFile())),
    (file) => Effect.ignore(Effect.tryPromise(() => file.close()))
  )

/** Reads the UTF-8 text of a file. */
export const readText = (path: string): Effect.Effect<string, FileUnreadable> =>
  Effect.flatMap(
    readOctets(path),
    (octets) =>
      Effect.try({
        try: () => new TextDecoder("utf-8", { fatal: true }).decode(octets),
        catch: () => new FileUnreadable({ path, reason: "is not UTF-8 text" })
      })
  )

/** Returns whether nothing exists at a path. Returns false if this cannot be determined. */
export const isAbsent = (path: string): Effect.Effect<boolean> =>
  Effect.promise(() => fs.stat(path).then(() => false, (cause: unknown) => codeOf(cause) === "ENOENT"))

/** Returns whether a path is a file that this process may run. */
export const isExecutable = (path: string): Effect.Effect<boolean> =>
  Effect.tryPromise(async () => (await fs.stat(path)).isFile() && (await fs.access(path, fs.constants.X_OK), true))
    .pipe(
      Effect.orElseSucceed(() => false)
    )

/** Returns the permission bits of a file, or undefined if they cannot be read. */
export const modeOf = (path: string): Effect.Effect<number | undefined> =>
  Effect.promise(() => fs.stat(path).then(({ mode }) => mode & 0o777, () => undefined))

/** Returns the texts of the wanted files in a folder, keyed and sorted by file name. */
export const readFolder = (
  path: string,
  isWanted: (name: string) => boolean
): Effect.Effect<ReadonlyMap<string, string>, FileUnreadable> =>
  Effect.gen(function*() {
    const names = yield* Effect.tryPromise({
      try: () => fs.readdir(path),
      catch: (cause) => {
        const code = codeOf(cause) ?? "unknown"
        return new FileUnreadable({ path, reason: folderReasonOf(code), code })
      }
    })
    const wanted = names.filter(isWanted).sort()
    const texts = yield* Effect.forEach(wanted, (name) => readText(`${path}/${name}`))
    return new Map(wanted.map((name, index) => [name, texts[index] ?? ""]))
  })

/** A file below a folder. */
export interface FileBelow {
  /** The path of the file from the folder, with `/` between its parts. */
  readonly name: string
  readonly path: string
}

/** Returns the files below a folder, sorted by name. */
export const filesBelow = (folder: string): Effect.Effect<ReadonlyArray<FileBelow>, FileUnreadable> =>
  Effect.map(
    Effect.tryPromise({
      try: () => fs.readdir(folder, { recursive: true, withFileTypes: true }),
      catch: (cause) => {
        const code = codeOf(cause) ?? "unknown"
        return new FileUnreadable({ path: folder, reason: folderReasonOf(code), code })
      }
    }),
    (entries) =>
      entries.filter((entry) => !entry.isDirectory()).map(({ name, parentPath }) => {
        const path = nodePath.join(parentPath, name)
        return { name: nodePath.relative(folder, path).replaceAll(nodePath.sep, "/"), path }
      }).toSorted((one, other) => one.name < other.name ? -1 : 1)
  )

/** The space of a disk in octets: what is free for this program, and all of it. */
export interface DiskSpace {
  readonly free: number
  readonly total: number
}

/** Returns the space of the disk that a file is on. Returns nothing if its directory is not there. */
export const diskSpaceOf = (file: string): Effect.Effect<Option.Option<DiskSpace>> =>
  Effect.option(
    Effect.map(
      Effect.tryPromise(() => fs.statfs(nodePath.dirname(file))),
      ({ bavail, blocks, bsize }) => ({ free: bavail * bsize, total: blocks * bsize })
    )
  )

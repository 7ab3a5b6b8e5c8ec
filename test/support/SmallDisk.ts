import { execFileSync } from "node:child_process"
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** A file system of a few megabytes. */
export interface SmallDisk {
  readonly directory: string
  /** Fills the free space except for `but` octets, but at least one block. */
  readonly fill: (but: number) => void
  /** Frees the space that {@link fill} took. */
  readonly clear: () => void
  readonly free: () => number
  readonly remove: () => void
}

/** This machine cannot mount a file system. The message says why. */
export class NotMountable extends Error {}

/** Mounts a file system, which needs root. May fail with {@link NotMountable}. */
export const makeSmallDisk = (megabytes: number): SmallDisk => {
  const directory = mkdtempSync(join(tmpdir(), "acme-disk-"))
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", directory], { stdio: "pipe" })
  } catch (error) {
    rmSync(directory, { recursive: true })
    throw new NotMountable(`a tmpfs cannot be mounted: ${String(error).split("\n").slice(0, 2).join(" ")}`)
  }
  const ballast = join(directory, "ballast")
  const free = () => {
    const { bavail, bsize } = statfsSync(directory)
    return bavail * bsize
  }
  let isMounted = true
  const remove = () => {
    if (!isMounted) return
    isMounted = false
    process.off("exit", remove)
    // This is a lazy unmount, because a killed process might not have ended yet.
    execFileSync("umount", ["--lazy", directory], { stdio: "pipe" })
    rmSync(directory, { recursive: true, force: true })
  }
  process.once("exit", remove)
  return {
    directory,
    free,
    remove,
    clear: () => rmSync(ballast, { force: true }),
    fill: (but) => {
      const file = openSync(ballast, "a")
      try {
        for (let left = free() - but; left > 0; left = free() - but) {
          writeSync(file, Buffer.alloc(Math.min(left, 1_048_576)))
        }
      } finally {
        closeSync(file)
      }
    }
  }
}

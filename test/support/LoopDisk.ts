import { execFileSync } from "node:child_process"
import { copyFileSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NotMountable } from "./SmallDisk.ts"

/** A disk in a file that can lose its power. */
export interface LoopDisk {
  readonly directory: string
  /** Writes everything to the disk that is only in memory. */
  readonly sync: () => void
  /** Copies the present content of the disk itself, without data that is only in the system's memory. */
  readonly keep: () => void
  /** Replaces the disk by the copy, as when the power is back. No process may have a file on the disk open. */
  readonly cut: () => void
  readonly remove: () => void
}

const run = (command: string, ...words: ReadonlyArray<string>): void => {
  execFileSync(command, words, { stdio: "pipe" })
}

/** Makes and mounts a disk, which needs root. May fail with {@link NotMountable}. */
export const makeLoopDisk = (megabytes: number): LoopDisk => {
  const home = mkdtempSync(join(tmpdir(), "acme-loop-"))
  const [image, kept, directory] = [join(home, "image"), join(home, "kept"), mkdtempSync(join(home, "disk-"))]
  // Only synced data is written, because by itself the journal commits only every five minutes.
  const mount = () => run("mount", "-o", "loop,commit=300", image, directory)
  try {
    writeFileSync(image, "")
    truncateSync(image, megabytes * 1_048_576)
    run("mkfs.ext4", "-q", image)
    mount()
    // PostgreSQL runs as another user.
    run("chmod", "0755", home)
    run("chmod", "0777", directory)
  } catch (error) {
    rmSync(home, { recursive: true, force: true })
    throw new NotMountable(`a loop device cannot be mounted: ${String(error).split("\n").slice(0, 2).join(" ")}`)
  }
  let isThere = true
  const remove = () => {
    if (!isThere) return
    isThere = false
    process.off("exit", remove)
    run("umount", "--lazy", directory)
    rmSync(home, { recursive: true, force: true })
  }
  process.once("exit", remove)
  return {
    directory,
    sync: () => run("sync", "--file-system", directory),
    keep: () => copyFileSync(image, kept),
    cut: () => {
      run("umount", directory)
      renameSync(kept, image)
      mount()
    },
    remove
  }
}

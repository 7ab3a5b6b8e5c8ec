import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { runCommand } from "../Command.ts"

/*
 * Debian packages that are unpacked only for the run. Their scripts do not run, the host does not know them, and
 * installed versions stay.
 */

const download = async (packages: ReadonlyArray<string>, archives: string): Promise<void> => {
  const words = [
    "--yes",
    "--no-install-recommends",
    // Includes packages that are already installed here.
    "--reinstall",
    "--download-only",
    // Nothing is installed, and the archives are in a folder of the caller, so that no lock and no root is needed.
    "--option",
    "Debug::NoLocking=true",
    "--option",
    `Dir::Cache::archives=${archives}`,
    // The caller fetches the archives, because the folder is not open to other users.
    "--option",
    "APT::Sandbox::User="
  ]
  await runCommand("apt-get", [...words, "install", ...packages], { timeoutMs: 600_000 })
}

/** Unpacks packages, and those of their dependencies that this host lacks, while `use` runs. */
export const withPackages = async <A>(
  packages: ReadonlyArray<string>,
  /** Gets the folder, and the packages with their versions. */
  use: (folder: string, versions: ReadonlyArray<string>) => Promise<A>
): Promise<A> => {
  const folder = mkdtempSync(join(tmpdir(), "acme-unpacked-"))
  // Some of the unpacked programs run as other users.
  chmodSync(folder, 0o755)
  try {
    const archives = join(folder, "archives")
    mkdirSync(join(archives, "partial"), { recursive: true })
    try {
      await download(packages, archives)
    } catch {
      // The lists of packages may be missing, or older than the archive.
      await runCommand("apt-get", ["update"], { timeoutMs: 300_000 })
      await download(packages, archives)
    }
    const files = readdirSync(archives).filter((name) => name.endsWith(".deb")).map((name) => join(archives, name))
    for (const file of files) await runCommand("dpkg-deb", ["--extract", file, folder])
    const shown = files.map((file) => runCommand("dpkg-deb", ["--show", "--showformat=${Package} ${Version}", file]))
    return await use(folder, await Promise.all(shown))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

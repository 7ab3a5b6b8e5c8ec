import { runCommand } from "../interop/Command.ts"

/** Returns a number of bytes in a form for people. */
export const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`

/** Returns the disk space of a file, or of everything below a folder, in bytes, without matches of `exclude`. */
export const sizeOf = async (place: string, exclude = ""): Promise<number> => {
  const said = await runCommand("du", ["--summarize", "--block-size=1", `--exclude=${exclude}`, place])
  return Number(said.split("\t")[0])
}

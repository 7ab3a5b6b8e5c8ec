import { runCommand } from "../interop/Command.ts"

/** So many bytes, for people. */
export const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`

/** What a file, or all that lies below a folder, takes of the disk, in bytes; what `exclude` matches is left out. */
export const sizeOf = async (place: string, exclude = ""): Promise<number> => {
  const said = await runCommand("du", ["--summarize", "--block-size=1", `--exclude=${exclude}`, place])
  return Number(said.split("\t")[0])
}

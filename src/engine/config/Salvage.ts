/* Reads what can still be read of a TOML file with a fault. */

const header = /^\s*\[{1,2}\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))\s*[.\]]/
const pair = /^\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))\s*[.=]/

const nameOf = (match: RegExpExecArray | null): string | undefined => match?.[1] ?? match?.[2] ?? match?.[3]

/**
 * Returns the lines of a file that define one of its top-level tables, as a separate file. The rest of the file may be
 * broken. Returns undefined if the file has multi-line texts, because a line of such a text may look like a table.
 */
export const tableOf = (text: string, name: string): string | undefined => {
  if (/"""|'''/.test(text)) return undefined
  let within: string | undefined = ""
  const own: Array<string> = []
  for (const line of text.split("\n")) {
    // A broken header begins no table, but it ends the table before it.
    if (/^\s*\[/.test(line)) within = nameOf(header.exec(line))
    if (within === name || (within === "" && nameOf(pair.exec(line)) === name)) own.push(line)
  }
  return own.join("\n")
}

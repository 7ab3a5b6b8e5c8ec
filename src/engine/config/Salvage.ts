/* Reads the undamaged parts of a TOML file that has a fault. */

const header = /^\s*\[{1,2}\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))\s*[.\]]/
const pair = /^\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))\s*[.=]/

const nameOf = (match: RegExpExecArray | null): string | undefined => match?.[1] ?? match?.[2] ?? match?.[3]

/**
 * Returns the lines of a file that define one of its top-level tables, as a file of its own. The rest of the file may
 * be broken. Returns undefined if the file has multi-line texts, because a line of such a text may look like the header
 * of a table.
 */
export const tableOf = (text: string, name: string): string | undefined => {
  if (/"""|'''/.test(text)) return undefined
  let within: string | undefined = ""
  const own: Array<string> = []
  for (const line of text.split("\n")) {
    // A broken header begins no table, but it ends the previous table.
    if (/^\s*\[/.test(line)) within = nameOf(header.exec(line))
    if (within === name || (within === "" && nameOf(pair.exec(line)) === name)) own.push(line)
  }
  return own.join("\n")
}

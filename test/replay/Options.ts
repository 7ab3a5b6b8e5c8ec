/** The options of `npm run replay`. */
export interface Options {
  /** Whether to write the recordings again instead of comparing with them. */
  readonly record: boolean
  /**
   * Parts of the names of groups, such as `credentials` or `.cli`. A group is played if its name contains one of them.
   * Without parts, all groups are played.
   */
  readonly only: ReadonlyArray<string>
  /** Whether to name all plays that differ in the same way, and not only the first few. */
  readonly all: boolean
  /** Whether to print the decided differences as well. */
  readonly decided: boolean
}

const usage = "npm run replay -- [--record] [--only WORD]… [--all] [--decided]"

/** Reads the words of a command line. Throws a sentence that says what is wrong with them. */
export const readOptions = (words: ReadonlyArray<string>): Options => {
  const options = { record: false, only: [] as Array<string>, all: false, decided: false }
  const rest = [...words]
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    switch (word) {
      case "--record":
      case "--all":
      case "--decided":
        options[word.slice(2) as "record" | "all" | "decided"] = true
        break
      case "--only": {
        const given = rest.shift()
        if (given === undefined) throw new Error(`--only wants a word: ${usage}`)
        options.only.push(given)
        break
      }
      default:
        throw new Error(`${word} is no option: ${usage}`)
    }
  }
  return options
}

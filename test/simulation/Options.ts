/** The options of `npm run simulate`. */
export interface Options {
  /** The first seed, and the number of seeds. */
  readonly from: number
  readonly seeds: number
  /** Whether to end at the first seed that finds something. */
  readonly first: boolean
  /** Whether to print every event. */
  readonly trace: boolean
  /** Whether to look for the planted bugs, and not to run the unchanged code. */
  readonly planted: boolean
  /** The number of the planted bug to look for, from 1; 0 for all. */
  readonly bug: number
  readonly json: boolean
  /** The number of processes that share the seeds. */
  readonly processes: number
}

const usage =
  `npm run simulate -- [--seeds N] [--from N] [--seed N] [--trace] [--first] [--planted [--bug N]] [--processes N] [--json]`

/** Reads the options of a command line. Throws a sentence that says what is wrong with them. */
export const readOptions = (words: ReadonlyArray<string>): Options => {
  const options = { from: 1, seeds: 100, first: false, trace: false, planted: false, bug: 0, json: false, processes: 2 }
  const rest = [...words]
  const number = (word: string, least: number): number => {
    const given = rest.shift() ?? ""
    const value = Number(given)
    if (!/^\d+$/.test(given) || !Number.isSafeInteger(value) || value < least) {
      throw new Error(`${word} wants a whole number of at least ${least}, not "${given}"`)
    }
    return value
  }
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    switch (word) {
      case "--seeds":
        options.seeds = number(word, 1)
        break
      case "--from":
        options.from = number(word, 0)
        break
      case "--seed":
        options.from = number(word, 0)
        options.seeds = 1
        break
      case "--bug":
        options.bug = number(word, 1)
        break
      case "--processes":
        options.processes = number(word, 1)
        break
      case "--first":
      case "--trace":
      case "--planted":
      case "--json":
        options[word.slice(2) as "first" | "trace" | "planted" | "json"] = true
        break
      default:
        throw new Error(`${word} is no option: ${usage}`)
    }
  }
  return options
}

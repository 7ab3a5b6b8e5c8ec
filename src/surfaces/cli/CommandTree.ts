/** A flag or an argument of a command. */
export interface Flag {
  /** The name, such as `--limit` or `<id>`. */
  readonly name: string
  /** Other names of the flag, such as `-y`. */
  readonly aliases: ReadonlyArray<string>
  /** The placeholder of the value in the help. Undefined if the flag takes no value. */
  readonly value: string | undefined
  /** The known valid values. Completions offer them. */
  readonly words: ReadonlyArray<string>
  /**
   * Whether a word that is not in {@link words} is refused when the command line is read. If not, the operation checks
   * the word.
   */
  readonly isClosed: boolean
  readonly isNeeded: boolean
  readonly isRepeated: boolean
  /** The value if the flag is not given. */
  readonly fallback: string | undefined
  readonly text: string
}

/**
 * Returns the description of a flag: its sentence, its words if `listsWords` is set, and whether the flag may be given
 * several times.
 */
export const saidOf = ({ isRepeated, text, words }: Flag, listsWords: boolean): string =>
  [
    text,
    listsWords ? `One of ${words.join(", ")}.` : "",
    isRepeated && !/several times|repeated/.test(text) ? "May be given several times." : ""
  ].filter((part) => part !== "").join(" ")

/** An exit code and its meaning. */
export interface Exit {
  readonly code: number
  readonly meaning: string
}

/**
 * One command with its flags and arguments. The parser, the help, the completions and the documents use the same tree.
 */
export interface CommandNode {
  /** The words of the command line, starting with the program's name. */
  readonly path: ReadonlyArray<string>
  /** What the command does, in sentences. */
  readonly text: string
  /** An example. A group of commands has neither an example nor exit codes. */
  readonly example: string | undefined
  readonly exits: ReadonlyArray<Exit>
  readonly flags: ReadonlyArray<Flag>
  readonly args: ReadonlyArray<Flag>
  readonly children: ReadonlyArray<CommandNode>
}

/** Returns the name of a command in its group. */
export const wordOf = ({ path }: CommandNode): string => path.at(-1) ?? ""

/** Returns the child with this name. */
export const childOf = (node: CommandNode, word: string): CommandNode | undefined =>
  node.children.find((child) => wordOf(child) === word)

/** Returns every command that can be run, in order. */
export const leavesOf = (node: CommandNode): ReadonlyArray<CommandNode> =>
  node.children.length === 0 ? [node] : node.children.flatMap(leavesOf)

/** The usual meaning of each exit code. A command may describe a code in its own words. */
export const usualExits: ReadonlyArray<Exit> = [
  { code: 0, meaning: "done, also if there was nothing to do" },
  { code: 1, meaning: "the host could not do it: database, file, network; another try may help" },
  { code: 2, meaning: "the command line is wrong" },
  { code: 3, meaning: "it cannot be done as asked: no such record, wrong state, refused" }
]

const exitsOf = (written: string): ReadonlyArray<Exit> => {
  const own = new Map(
    written.split(/,\s*(?=\d)/).map((one) => {
      const [code = "", ...meaning] = one.trim().split(" ")
      return [Number(code), meaning.join(" ")] as const
    })
  )
  // Any command line can be wrong, even if the description of its command does not list code 2.
  return usualExits.filter(({ code }) => code === 2 || own.has(code)).map(({ code, meaning }) => ({
    code,
    meaning: own.get(code) || meaning
  }))
}

const notation = /^(.*?)\s*Example: (.*?)\.\s+Exit codes: (.*?)\.?$/s

/**
 * Splits the description of a command into its parts. The description is one string: what the command does, `Example:
 * <command line>.` and `Exit codes: 0, 3 behind.` A code without words has its usual meaning.
 */
export const describedBy = (description: string): Pick<CommandNode, "text" | "example" | "exits"> => {
  const [, text, example, exits] = notation.exec(description) ?? []
  return text === undefined
    ? { text: description, example: undefined, exits: [] }
    : { text, example, exits: exitsOf(exits ?? "") }
}

/** Returns a description as one line of a list: the first sentence, shortened if it is too long. */
export const summaryOf = ({ text }: CommandNode, room: number): string => {
  const [sentence = ""] = text.split(/(?<=\.)\s/)
  const line = sentence.replace(/\.$/, "")
  if (line.length <= room) return line
  const cut = Math.max(...["; ", ": ", ", "].map((mark) => line.lastIndexOf(mark, room)))
  return cut > 0 ? line.slice(0, cut) : `${line.slice(0, room - 1).trimEnd()}…`
}

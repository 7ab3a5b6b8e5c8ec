/** A flag of a command, or an argument. */
export interface Flag {
  /** `--limit`, or `<id>`. */
  readonly name: string
  /** Its other names: `-y`. */
  readonly aliases: ReadonlyArray<string>
  /** What stands for its value in the help; absent for one that has none. */
  readonly value: string | undefined
  /** Words it is known to take. Completions offer them. */
  readonly words: ReadonlyArray<string>
  /** Whether a word that is not of {@link words} is wrong, rather than merely unknown. */
  readonly isClosed: boolean
  readonly isNeeded: boolean
  readonly isRepeated: boolean
  /** What it is without being given. */
  readonly fallback: string | undefined
  readonly text: string
}

/** What is said of a flag: its sentence, the words of a set where `listsWords`, and whether it may be given several times. */
export const saidOf = ({ isRepeated, text, words }: Flag, listsWords: boolean): string =>
  [
    text,
    listsWords ? `One of ${words.join(", ")}.` : "",
    isRepeated && !/several times|repeated/.test(text) ? "May be given several times." : ""
  ].filter((part) => part !== "").join(" ")

/** What a command ends with, and what that means. */
export interface Exit {
  readonly code: number
  readonly meaning: string
}

/** One command and what it takes: a tree that the parser, the help, the completions and the documents share. */
export interface CommandNode {
  /** The words that lead to it, from the program's name on. */
  readonly path: ReadonlyArray<string>
  /** What it does, in sentences. */
  readonly text: string
  /** A command line, and the codes it may end with; a group of commands has none. */
  readonly example: string | undefined
  readonly exits: ReadonlyArray<Exit>
  readonly flags: ReadonlyArray<Flag>
  readonly args: ReadonlyArray<Flag>
  readonly children: ReadonlyArray<CommandNode>
}

/** The name a command goes by in its group. */
export const wordOf = ({ path }: CommandNode): string => path.at(-1) ?? ""

/** The child of a name. */
export const childOf = (node: CommandNode, word: string): CommandNode | undefined =>
  node.children.find((child) => wordOf(child) === word)

/** Every command that can be run, in order. */
export const leavesOf = (node: CommandNode): ReadonlyArray<CommandNode> =>
  node.children.length === 0 ? [node] : node.children.flatMap(leavesOf)

/** What codes mean where a command does not say it in its own words. */
export const usualExits: ReadonlyArray<Exit> = [
  { code: 0, meaning: "done, also when there was nothing to do" },
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
  // Every command line can be wrong, whether its description says so or not.
  return usualExits.filter(({ code }) => code === 2 || own.has(code)).map(({ code, meaning }) => ({
    code,
    meaning: own.get(code) || meaning
  }))
}

const notation = /^(.*?)\s*Example: (.*?)\.\s+Exit codes: (.*?)\.?$/s

/**
 * Takes a description apart, which is written in one string beside its command: what it does, `Example: <command line>.` and
 * `Exit codes: 0, 3 behind.` A code without words has those of every command.
 */
export const describedBy = (description: string): Pick<CommandNode, "text" | "example" | "exits"> => {
  const [, text, example, exits] = notation.exec(description) ?? []
  return text === undefined
    ? { text: description, example: undefined, exits: [] }
    : { text, example, exits: exitsOf(exits ?? "") }
}

/** A description as one line of a list: its first sentence, or what of it fits. */
export const summaryOf = ({ text }: CommandNode, room: number): string => {
  const [sentence = ""] = text.split(/(?<=\.)\s/)
  const line = sentence.replace(/\.$/, "")
  if (line.length <= room) return line
  const cut = Math.max(...["; ", ": ", ", "].map((mark) => line.lastIndexOf(mark, room)))
  return cut > 0 ? line.slice(0, cut) : `${line.slice(0, room - 1).trimEnd()}…`
}

import type { CommandNode, Flag } from "./CommandTree.ts"
import { summaryOf, wordOf } from "./CommandTree.ts"
import { globalFlags } from "./Globals.ts"

/** The shells that have a completion script. */
export const shells = ["bash", "fish", "zsh"] as const

/*
 * Each script contains the whole tree, so that completing runs no program. `place` is the words of the current command,
 * each with a space before it. What may follow depends on the place and on the word before.
 */

/** A word that may follow, and its description. */
interface Offer {
  readonly word: string
  readonly text: string
}

interface Place {
  /** ` order list`; empty for the program itself. */
  readonly name: string
  readonly node: CommandNode
  readonly offers: ReadonlyArray<Offer>
  readonly flags: ReadonlyArray<Flag>
}

const longestText = 70

const firstOf = (text: string): string => (text.split(/(?<=\.)\s/)[0] ?? "").replace(/\.$/, "")

const flagOffers = (flags: ReadonlyArray<Flag>): ReadonlyArray<Offer> =>
  flags.flatMap(({ aliases, name, text }) => [...aliases, name].map((word) => ({ word, text: firstOf(text) })))

const placesOf = (node: CommandNode): ReadonlyArray<Place> => {
  const flags = [...node.flags, ...globalFlags]
  const commands = node.children.map((child) => ({ word: wordOf(child), text: summaryOf(child, longestText) }))
  const values = node.args.flatMap(({ text, words }) => words.map((word) => ({ word, text: firstOf(text) })))
  const name = node.path.slice(1).map((word) => ` ${word}`).join("")
  return [
    { name, node, flags, offers: [...commands, ...values, ...flagOffers(flags)] },
    ...node.children.flatMap(placesOf)
  ]
}

const isFile = ({ name, value }: Flag): boolean => name.endsWith("-file") || value === "file"

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/**
 * Every flag with a value, by the places where it may be written. A flag that is allowed in all places is listed once.
 */
const valued = (places: ReadonlyArray<Place>) => [
  ...globalFlags.filter(({ value }) => value !== undefined).map((flag) => ({ pattern: `*' ${flag.name}'`, flag })),
  ...places.flatMap(({ name, node }) =>
    node.flags.filter(({ value }) => value !== undefined).map((flag) => ({
      pattern: quoted(`${name} ${flag.name}`),
      flag
    }))
  )
]

/** Patterns with the same answer share one arm. */
const arms = (
  places: ReadonlyArray<Place>,
  answer: { readonly files: string; readonly words: (flag: Flag) => string; readonly nothing: string }
): ReadonlyArray<string> => {
  const byAnswer = new Map<string, Array<string>>()
  for (const { flag, pattern } of valued(places)) {
    const said = flag.words.length > 0 ? answer.words(flag) : isFile(flag) ? answer.files : answer.nothing
    byAnswer.set(said, [...byAnswer.get(said) ?? [], pattern])
  }
  return [...byAnswer].map(([said, patterns]) => `    ${patterns.join(" | ")}) ${said} ;;`)
}

const known = (places: ReadonlyArray<Place>): string =>
  places.filter(({ name }) => name !== "").map(({ name }) => quoted(name)).join(" | ")

const bash = (places: ReadonlyArray<Place>): ReadonlyArray<string> => [
  "# bash completion of acme-svc: source <(acme-svc completions bash)",
  "_acme_svc() {",
  "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} place= offered= at",
  "  COMPREPLY=()",
  "  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi",
  "  for ((at = 1; at < COMP_CWORD; at++)); do",
  "    [[ $at == 1 && ${COMP_WORDS[at]} == help ]] && continue",
  "    case \"$place ${COMP_WORDS[at]}\" in",
  `      ${known(places)}) place="$place \${COMP_WORDS[at]}" ;;`,
  "    esac",
  "  done",
  "  case \"$place $before\" in",
  ...arms(places, {
    files: "COMPREPLY=($(compgen -f -- \"$word\")); return",
    words: ({ words }) => `COMPREPLY=($(compgen -W ${quoted(words.join(" "))} -- "$word")); return`,
    nothing: "return"
  }),
  "  esac",
  "  case $place in",
  ...places.map(({ name, offers }) =>
    `    ${quoted(name)}) offered=${quoted(offers.map(({ word }) => word).join(" "))} ;;`
  ),
  "  esac",
  "  [[ -z $word && $offered != -* ]] && offered=${offered%% -*}",
  "  COMPREPLY=($(compgen -W \"$offered\" -- \"$word\"))",
  "}",
  "complete -F _acme_svc acme-svc"
]

const described = ({ text, word }: Offer): string => quoted(`${word}:${text}`)

const zsh = (places: ReadonlyArray<Place>): ReadonlyArray<string> => [
  "#compdef acme-svc",
  "# zsh completion of acme-svc: source <(acme-svc completions zsh), or a file _acme-svc in a folder of fpath",
  "_acme_svc() {",
  "  local place= word",
  "  local -a offered",
  "  local -i at",
  "  for ((at = 2; at < CURRENT; at++)); do",
  "    word=${words[at]}",
  "    [[ $at == 2 && $word == help ]] && continue",
  "    case \"$place $word\" in",
  `      ${known(places)}) place="$place $word" ;;`,
  "    esac",
  "  done",
  "  case \"$place ${words[CURRENT-1]}\" in",
  ...arms(places, {
    files: "_files; return",
    words: ({ words }) => `offered=(${words.map(quoted).join(" ")}); _describe value offered; return`,
    nothing: "_message value; return"
  }),
  "  esac",
  "  case $place in",
  ...places.map(({ name, offers }) => `    ${quoted(name)}) offered=(${offers.map(described).join(" ")}) ;;`),
  "  esac",
  "  _describe 'command or flag' offered",
  "}",
  "if [[ $funcstack[1] == _acme-svc ]]; then _acme_svc \"$@\"; else compdef _acme_svc acme-svc; fi"
]

const fishQuoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`

const fishFlag = (condition: string, flag: Flag): string => {
  const { aliases, name, text, value, words } = flag
  const short = aliases.filter((alias) => alias.length === 2).map((alias) => ` -s ${alias.slice(1)}`).join("")
  const takes = value === undefined
    ? ""
    : words.length > 0
    ? ` -x -a ${fishQuoted(words.join(" "))}`
    : isFile(flag)
    ? " -r -F"
    : " -x"
  return `complete -c acme-svc${condition}${short} -l ${name.slice(2)}${takes} -d ${fishQuoted(firstOf(text))}`
}

const fish = (places: ReadonlyArray<Place>): ReadonlyArray<string> => [
  "# fish completion of acme-svc: acme-svc completions fish | source",
  "function __acme_svc_at --argument-names wanted",
  "  set -l place ''",
  "  set -l given (commandline -opc)",
  "  set -e given[1]",
  "  if test \"$given[1]\" = help",
  "    set -e given[1]",
  "  end",
  "  for word in $given",
  "    switch \"$place $word\"",
  `      case ${places.filter(({ name }) => name !== "").map(({ name }) => fishQuoted(name)).join(" ")}`,
  "        set place \"$place $word\"",
  "    end",
  "  end",
  "  test \"$place\" = \"$wanted\"",
  "end",
  "complete -c acme-svc -f",
  ...globalFlags.map((flag) => fishFlag("", flag)),
  ...places.flatMap(({ name, node, offers }) => {
    const condition = ` -n ${fishQuoted(`__acme_svc_at ${quoted(name)}`)}`
    return [
      ...offers.filter(({ word }) => !word.startsWith("-")).map(({ text, word }) =>
        `complete -c acme-svc${condition} -a ${fishQuoted(word)} -d ${fishQuoted(text)}`
      ),
      ...node.flags.map((flag) => fishFlag(condition, flag))
    ]
  })
]

const scripts = { bash, fish, zsh }

/** The completion script of a shell. Completing runs no program and reads nothing of the service. */
export const renderCompletions = (root: CommandNode, shell: (typeof shells)[number]): string =>
  scripts[shell](placesOf(root)).join("\n")

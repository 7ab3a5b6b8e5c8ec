import type { CommandNode, Flag } from "./CommandTree.ts"
import { summaryOf, wordOf } from "./CommandTree.ts"
import { globalFlags } from "./Globals.ts"

/** The shells that have a completion script. */
export const shells = ["bash", "elvish", "fish", "powershell", "zsh"] as const

/*
 * Each script contains the whole tree, so that a completion runs no program. `place` holds the words of the current
 * command, each with a space before it. The possible next words depend on the place and on the previous word.
 */

/** A possible next word, with its description. */
interface Offer {
  readonly word: string
  readonly text: string
}

interface Place {
  /** The words of the command, such as ` order list`. Empty for the program itself. */
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
 * Returns every flag with a value, by the places where it may be written. A flag that is allowed in all places is
 * listed once.
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

/** Returns the arms of a `case`. Patterns with the same result share one arm. */
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

/** Quotes a text for PowerShell or Elvish. In both, an apostrophe within quotes is written twice. */
const doubled = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** Returns the words of each flag that has words, by place and flag. A global flag is listed at every place. */
const wordsAt = (places: ReadonlyArray<Place>): ReadonlyArray<readonly [at: string, words: ReadonlyArray<string>]> =>
  places.flatMap(({ flags, name }) =>
    flags.flatMap((flag) => flag.words.length === 0 ? [] : [[`${name} ${flag.name}`, flag.words] as const])
  )

/**
 * Returns the flags that take a value but have no known words, by place and flag. PowerShell and Elvish offer files for
 * these flags without help from the script.
 */
const freeAt = (places: ReadonlyArray<Place>): ReadonlyArray<string> =>
  places.flatMap(({ flags, name }) =>
    flags.filter(({ value, words }) => value !== undefined && words.length === 0).map((flag) => `${name} ${flag.name}`)
  )

const powershell = (places: ReadonlyArray<Place>): ReadonlyArray<string> => [
  "# PowerShell completion of acme-svc: acme-svc completions powershell | Out-String | Invoke-Expression",
  "Register-ArgumentCompleter -Native -CommandName acme-svc -ScriptBlock {",
  "  param($word, $ast, $cursor)",
  "  $offers = @{",
  ...places.map(({ name, offers }) =>
    `    ${doubled(name)} = @(${
      offers.map(({ text, word }) => `@(${doubled(word)}, ${doubled(text === "" ? word : text)})`).join(", ")
    })`
  ),
  "  }",
  "  $words = @{",
  ...wordsAt(places).map(([at, words]) => `    ${doubled(at)} = @(${words.map(doubled).join(", ")})`),
  "  }",
  `  $free = @(${freeAt(places).map(doubled).join(", ")})`,
  "  $given = @($ast.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { $_.Extent.Text })",
  "  $place = ''",
  "  for ($at = 0; $at -lt $given.Count; $at++) {",
  "    if ($at -eq 0 -and $given[$at] -eq 'help') { continue }",
  "    if ($offers.ContainsKey(\"$place $($given[$at])\")) { $place = \"$place $($given[$at])\" }",
  "  }",
  "  $before = if ($given.Count -gt 0) { \"$place $($given[-1])\" } else { '' }",
  "  if ($free -contains $before) { return }",
  "  $found = if ($words.ContainsKey($before)) { $words[$before] | ForEach-Object { , @($_, $_) } } else { $offers[$place] }",
  "  $found | Where-Object { $_[0] -like \"$word*\" } | ForEach-Object {",
  "    [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterValue', $_[1])",
  "  }",
  "}"
]

const elvish = (places: ReadonlyArray<Place>): ReadonlyArray<string> => [
  "# Elvish completion of acme-svc: eval (acme-svc completions elvish | slurp)",
  "var acme-svc-offers = [",
  ...places.map(({ name, offers }) =>
    `  &${doubled(name)}=[${offers.map(({ text, word }) => `[${doubled(word)} ${doubled(text)}]`).join(" ")}]`
  ),
  "]",
  "var acme-svc-words = [",
  ...wordsAt(places).map(([at, words]) => `  &${doubled(at)}=[${words.map(doubled).join(" ")}]`),
  "]",
  `var acme-svc-free = [${freeAt(places).map(doubled).join(" ")}]`,
  "fn acme-svc-completions {|@given|",
  "  var place = ''",
  "  var before = ''",
  "  var at = 0",
  "  for word $given[1..-1] {",
  "    if (and (has-key $acme-svc-offers $place' '$word) (not (and (== $at 0) (eq $word help)))) { set place = $place' '$word }",
  "    set before = $place' '$word",
  "    set at = (+ $at 1)",
  "  }",
  "  if (has-value $acme-svc-free $before) { return }",
  "  if (has-key $acme-svc-words $before) {",
  "    for word $acme-svc-words[$before] { put [$word ''] }",
  "    return",
  "  }",
  "  put $@acme-svc-offers[$place]",
  "}",
  "set edit:completion:arg-completer[acme-svc] = {|@given|",
  "  acme-svc-completions $@given | each {|offer|",
  "    edit:complex-candidate $offer[0] &display=(if (eq $offer[1] '') { put $offer[0] } else { put $offer[0]' ('$offer[1]')' })",
  "  }",
  "}"
]

const scripts = { bash, elvish, fish, powershell, zsh }

/** Returns the completion script of a shell. A completion runs no program and reads no data of the service. */
export const renderCompletions = (root: CommandNode, shell: (typeof shells)[number]): string =>
  scripts[shell](placesOf(root)).join("\n")

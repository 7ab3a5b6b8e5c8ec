import { tagsOf } from "./Tags.ts"
import { TemplateFault } from "./TemplateFault.ts"
import type { Token } from "./TemplateTokens.ts"
import { end, tokensOf } from "./TemplateTokens.ts"

/*
 * Checks that everything that a template uses exists. The engine looks up a filter, a test, a function, a macro or
 * another template only when a rendering reaches it. That may be long after startup
 * (docs/contribute/decisions/templates.md).
 */

/** Returns whether the engine knows a name. */
export type Knows = (kind: "filter" | "test" | "function", name: string) => boolean

/** The statements and operators that may precede a bracket. */
const words = new Set(
  `and or not in is if elif else for set with do call macro filter block import from include extends as autoescape`
    .split(
      " "
    )
)
/** Functions that exist only in some places. */
const placed = ["caller", "loop", "super"]
const naming = new Set(["include", "import", "from", "extends"])

interface Statement {
  readonly line: number
  readonly kind: "expression" | "statement"
  readonly tokens: ReadonlyArray<Token>
}

/** Returns the tags of a template. Comments and everything between `raw` and `endraw` are left out. */
const statementsOf = (text: string): ReadonlyArray<Statement> => {
  let isRaw = false
  return tagsOf(text).flatMap(({ inside, kind, line }) => {
    if (kind === "comment") return []
    const tokens = tokensOf(inside)
    const first = kind === "statement" ? tokens[0]?.text : undefined
    const wasRaw = isRaw
    if (first === "raw" || first === "endraw") isRaw = first === "raw"
    return wasRaw || isRaw ? [] : [{ line, kind, tokens }]
  })
}

const isSign = (token: Token | undefined, text: string): boolean => token?.kind === "sign" && token.text === text
const textOf = ({ text }: Token): string => text.slice(1, -1)

/** Returns the names that a template defines: its macros, imports and variables. */
const declaredIn = (statements: ReadonlyArray<Statement>): ReadonlyArray<string> =>
  statements.flatMap(({ kind, tokens: [first, ...rest] }) =>
    kind === "statement" && ["macro", "import", "from", "set", "for", "with", "call"].includes(first?.text ?? "")
      ? rest.filter((token) => token.kind === "name").map(({ text }) => text)
      : []
  )

const macrosIn = (statements: ReadonlyArray<Statement>): ReadonlySet<string> =>
  new Set(
    statements.flatMap(({ kind, tokens: [first, name] }) =>
      kind === "statement" && first?.text === "macro" && name !== undefined ? [name.text] : []
    )
  )

/** Returns the templates that a template imports as a whole, by the names that they have in the importing template. */
const importedBy = (statements: ReadonlyArray<Statement>): ReadonlyMap<string, string> =>
  new Map(
    statements.flatMap(({ kind, tokens: [first, from, as, name] }) =>
      kind === "statement" && first?.text === "import" && from?.kind === "string" && as?.text === "as" &&
        name !== undefined
        ? [[name.text, textOf(from)] as const]
        : []
    )
  )

/**
 * Returns the names that a template uses but that nothing defines. For each tag, only the first such name is returned.
 */
export const unknownIn = (
  sources: ReadonlyArray<{ readonly name: string; readonly text: string }>,
  knows: Knows
): ReadonlyArray<TemplateFault> => {
  const templates = new Map(sources.map(({ name, text }) => [name, statementsOf(text)]))
  const declared = new Set([...placed, ...[...templates.values()].flatMap(declaredIn)])

  const faultAt = (
    { kind, tokens }: Statement,
    at: number,
    imported: ReadonlyMap<string, string>
  ): string | undefined => {
    const [before, token, after] = [tokens[at - 1], tokens[at] ?? end, tokens[at + 1]]
    if (at === 1 && kind === "statement" && naming.has(before?.text ?? "") && token.kind === "string") {
      return templates.has(textOf(token)) || after?.text === "ignore" ? undefined : `there is no template ${token.text}`
    }
    if (token.kind !== "name") return undefined
    const isFilter = isSign(before, "|") || (at === 1 && kind === "statement" && before?.text === "filter")
    if (isFilter) return knows("filter", token.text) ? undefined : `the filter ${token.text} is not known`
    const isTest = token.text !== "not" && (before?.text === "is" ||
      (before?.text === "not" && tokens[at - 2]?.text === "is"))
    if (isTest) return knows("test", token.text) ? undefined : `the test ${token.text} is not known`
    if (!isSign(after, "(") || words.has(token.text)) return undefined
    if (isSign(before, ".")) {
      const module = tokens[at - 2]?.text ?? ""
      const macros = isSign(tokens[at - 3], ".") ? undefined : templates.get(imported.get(module) ?? "")
      return macros === undefined || macrosIn(macros).has(token.text)
        ? undefined
        : `${module} has no macro ${token.text}`
    }
    return declared.has(token.text) || knows("function", token.text)
      ? undefined
      : `the function ${token.text} is not known`
  }

  return [...templates].flatMap(([template, statements]) => {
    const imported = importedBy(statements)
    return statements.flatMap((statement) => {
      const faults = statement.tokens.map((_, at) => faultAt(statement, at, imported))
      const fault = faults.find((one) => one !== undefined)
      return fault === undefined ? [] : [new TemplateFault({ template, line: statement.line, fault })]
    })
  })
}

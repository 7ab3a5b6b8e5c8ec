import * as Data from "effect/Data"
import * as Result from "effect/Result"

/**
 * The conditions of filter rules: boolean expressions over check names (docs/contribute/decisions/policy.md,
 * "Conditions"). A chain of one operator is one node, so that a long text does not make a deep tree.
 */
export type Condition =
  | { readonly _tag: "Check"; readonly name: string }
  | { readonly _tag: "Not"; readonly of: Condition }
  | { readonly _tag: "And" | "Or"; readonly of: ReadonlyArray<Condition> }

/** Why a text is not a condition. `column` is the position of a character; the first is 1. */
export class ConditionFault extends Data.TaggedError("ConditionFault")<{
  readonly column: number
  readonly detail: string
}> {}

/** The form of a check's name. */
export const namePattern = /^[a-z0-9-]+$/

/** The words of the syntax. No check can have such a name. */
export const reservedNames: ReadonlyArray<string> = ["and", "or", "not"]

/** How deeply parentheses and `not` may be nested. */
const deepest = 100

interface Token {
  readonly text: string
  readonly column: number
}

// Each character belongs to one of the three alternatives, so no character is skipped.
const lexeme = /[ \t\r\n]+|[()]|[^ \t\r\n()]+/gu

const tokensOf = (text: string): ReadonlyArray<Token> => {
  const tokens: Array<Token> = []
  let column = 1
  for (const [lexed] of text.matchAll(lexeme)) {
    if (!/^[ \t\r\n]/.test(lexed)) tokens.push({ text: lexed, column })
    column += [...lexed].length
  }
  return [...tokens, { text: "", column }]
}

class Parser {
  private readonly tokens: ReadonlyArray<Token>
  private at = 0

  constructor(text: string) {
    this.tokens = tokensOf(text)
  }

  whole(): Condition {
    const condition = this.disjunction(0)
    const { column, text } = this.token
    if (text !== "") {
      throw new ConditionFault({ column, detail: text === ")" ? "nothing to close" : "needs an operator" })
    }
    return condition
  }

  private get token(): Token {
    return this.tokens[this.at] ?? { text: "", column: 0 }
  }

  private takes(word: string): boolean {
    const isNext = this.token.text.toLowerCase() === word
    if (isNext) this.at++
    return isNext
  }

  private disjunction(depth: number): Condition {
    return this.chain("Or", () => this.chain("And", () => this.term(depth)))
  }

  private chain(_tag: "And" | "Or", operand: () => Condition): Condition {
    const first = operand()
    const of = [first]
    while (this.takes(_tag.toLowerCase())) of.push(operand())
    return of.length === 1 ? first : { _tag, of }
  }

  private term(depth: number): Condition {
    const { column, text } = this.token
    if (depth > deepest) throw new ConditionFault({ column, detail: `is nested more than ${deepest} deep` })
    if (this.takes("not")) return { _tag: "Not", of: this.term(depth + 1) }
    if (this.takes("(")) {
      const inner = this.disjunction(depth + 1)
      if (!this.takes(")")) {
        throw new ConditionFault({ column: this.token.column, detail: "needs a closing parenthesis" })
      }
      return inner
    }
    if (text === "" || text === ")" || reservedNames.includes(text.toLowerCase())) {
      throw new ConditionFault({ column, detail: "needs the name of a check" })
    }
    if (!namePattern.test(text)) {
      throw new ConditionFault({ column, detail: "is not a name: a name has lower-case letters, digits and hyphens" })
    }
    this.at++
    return { _tag: "Check", name: text }
  }
}

/**
 * Reads a condition. `not` binds more tightly than `and`, and `and` more tightly than `or`. Operators may be in upper
 * or lower case.
 */
export const parseCondition = (text: string): Result.Result<Condition, ConditionFault> =>
  Result.try({
    try: () => new Parser(text).whole(),
    catch: (fault) =>
      fault instanceof ConditionFault ? fault : new ConditionFault({ column: 1, detail: "is unreadable" })
  })

/** Returns the condition as text. Every operation is in parentheses, and operations are left-associative. */
export const renderCondition = (condition: Condition): string => {
  if (condition._tag === "Check") return condition.name
  if (condition._tag === "Not") return `(not ${renderCondition(condition.of)})`
  const [first = "", ...rest] = condition.of.map(renderCondition)
  return rest.reduce((left, right) => `(${left} ${condition._tag.toLowerCase()} ${right})`, first)
}

/** Returns the checks that a condition names, each once, in the order in which they first appear. */
export const checksOf = (condition: Condition): ReadonlyArray<string> => {
  if (condition._tag === "Check") return [condition.name]
  const inner = condition._tag === "Not" ? [condition.of] : condition.of
  return [...new Set(inner.flatMap(checksOf))]
}

/** The result of a check or of a condition. */
export type Verdict = "pass" | "fail" | "undecided"

/** The evaluation needs the verdict of this check, which is not known yet. */
export interface Needs {
  readonly needs: string
}

/** Returns the verdict of a check, or `undefined` if the check has not run yet. */
export type Known = (check: string) => Verdict | undefined

const opposite = { pass: "fail", fail: "pass", undecided: "undecided" } as const

/**
 * Evaluates a condition in Kleene logic, from left to right. It never asks for a check that no longer matters, so the
 * verdict of a {@link Needs needed} check always matters. The caller runs that check and evaluates the condition again.
 */
export const evaluate = (condition: Condition, known: Known): Verdict | Needs => {
  if (condition._tag === "Check") return known(condition.name) ?? { needs: condition.name }
  if (condition._tag === "Not") {
    const inner = evaluate(condition.of, known)
    return typeof inner === "object" ? inner : opposite[inner]
  }
  const settling = condition._tag === "And" ? "fail" : "pass"
  let verdict: Verdict = opposite[settling]
  for (const operand of condition.of) {
    const inner = evaluate(operand, known)
    if (typeof inner === "object" || inner === settling) return inner
    if (inner === "undecided") verdict = "undecided"
  }
  return verdict
}

/**
 * Returns the checks that together decided an evaluated condition, in the order in which they ran. For a true `and`,
 * these are the checks of all operands. For a false `and`, they are those of the first false operand. For a true `or`,
 * they are those of the first true operand. For a false `or`, they are those of all operands.
 */
export const settledBy = (condition: Condition, verdict: "pass" | "fail", known: Known): ReadonlyArray<string> => {
  if (condition._tag === "Check") return [condition.name]
  if (condition._tag === "Not") return settledBy(condition.of, opposite[verdict], known)
  if ((condition._tag === "And") === (verdict === "pass")) {
    return condition.of.flatMap((operand) => settledBy(operand, verdict, known))
  }
  const settling = condition.of.find((operand) => evaluate(operand, known) === verdict)
  return settling === undefined ? [] : settledBy(settling, verdict, known)
}

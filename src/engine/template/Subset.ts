import * as Data from "effect/Data"
import { tagsOf } from "./Tags.ts"
import { TemplateFault } from "./TemplateFault.ts"
import type { Token } from "./TemplateTokens.ts"
import { end, tokensOf } from "./TemplateTokens.ts"

/*
 * Checks that a template stays in the subset of the language that messages may use
 * (docs/contribute/decisions/templates.md, "The subset"). The engine supports much more. Everything outside the subset
 * is refused before the engine sees it, so that operators' templates do not depend on the engine.
 */

/** The lowest and the highest number of arguments of each filter. */
const filters: { readonly [name: string]: readonly [number, number] } = {
  tojson: [0, 0],
  join: [0, 1],
  default: [1, 1],
  length: [0, 0],
  upper: [0, 0],
  lower: [0, 0],
  truncate: [1, 1],
  date: [0, 0]
}

const loopMembers = new Set(["first", "last", "index"])
const words = new Set([
  "and",
  "or",
  "not",
  "in",
  "if",
  "else",
  "is",
  "for",
  "true",
  "false",
  "none",
  "True",
  "False",
  "None"
])

class Outside extends Data.Error<{ readonly fault: string }> {}

const refuse = (fault: string): never => {
  throw new Outside({ fault })
}

/** Walks over the tokens of one tag. */
class Reader {
  private readonly tokens: ReadonlyArray<Token>
  private at = 0

  constructor(inside: string) {
    this.tokens = tokensOf(inside)
  }

  private get next(): Token {
    return this.tokens[this.at] ?? end
  }

  private take(): Token {
    const token = this.next
    this.at++
    return token
  }

  private skip(text: string): boolean {
    if (this.next.text !== text || this.next.kind === "string") return false
    this.at++
    return true
  }

  private unexpected(): never {
    const { kind, text } = this.next
    return refuse(kind === "string" ? "a string is not expected there" : `${text} is not expected there`)
  }

  end(): void {
    if (this.next !== end) this.unexpected()
  }

  name(what: string): string {
    const token = this.next
    if (token.kind !== "name" || words.has(token.text)) return refuse(`${what} is missing`)
    return this.take().text
  }

  private path(): void {
    const [root, first] = [this.name("a variable"), this.next.text === "." ? this.tokens[this.at + 1]?.text : undefined]
    if (root === "loop" && first !== undefined && !loopMembers.has(first)) refuse(`loop.${first} is not known`)
    while (this.skip(".")) {
      if (this.next.kind !== "name") refuse("the name of a member is missing after the dot")
      this.take()
    }
    if (this.next.text === "(" && this.next.kind === "sign") refuse(`${root} cannot be called`)
    if (this.next.text === "[" && this.next.kind === "sign") refuse("members are named after a dot, not in brackets")
  }

  private primary(): void {
    if (this.skip("(")) {
      this.expression()
      if (!this.skip(")")) this.unexpected()
    } else if (this.next.kind === "string" || this.next.kind === "number") this.take()
    else if (this.next.kind === "name" && !words.has(this.next.text)) this.path()
    else this.unexpected()
  }

  private filtered(): void {
    this.primary()
    while (this.skip("|")) {
      const name = this.name("the name of a filter")
      const bounds = filters[name]
      if (bounds === undefined) return refuse(`the filter ${name} is not known`)
      let given = 0
      if (this.skip("(") && !this.skip(")")) {
        do {
          this.expression()
          given++
        } while (this.skip(","))
        if (!this.skip(")")) this.unexpected()
      }
      if (given < bounds[0] || given > bounds[1]) refuse(`the filter ${name} does not take ${given} arguments`)
    }
  }

  private comparison(): void {
    if (this.skip("not")) return this.comparison()
    this.filtered()
    const compares = ["==", "!=", "<", ">", "in"].some((sign) => this.skip(sign))
    if (
      compares ||
      (this.next.text === "not" && this.tokens[this.at + 1]?.text === "in" && this.skip("not") && this.skip("in"))
    ) {
      if (this.next.text === "=") refuse("only == != < > compare")
      this.filtered()
    }
  }

  expression(): void {
    do this.comparison()
    while (this.skip("and") || this.skip("or"))
  }

  statement(): void {
    const word = this.take().text
    if (word === "if" || word === "elif") this.expression()
    else if (word === "for") {
      this.name("the variable of the loop")
      if (!this.skip("in")) refuse("a loop reads: for name in list")
      this.expression()
    } else if (word !== "else" && word !== "endif" && word !== "endfor") {
      refuse(word === end.text ? "the tag is empty" : `the tag ${word} is not known`)
    }
  }
}

/**
 * Returns the first part of a template that is outside the subset. The engine itself checks that the tags are balanced.
 */
export const outsideSubset = (template: string, source: string): TemplateFault | undefined => {
  for (const { inside, kind, line } of tagsOf(source)) {
    if (kind === "comment") continue
    const reader = new Reader(inside)
    try {
      if (kind === "statement") reader.statement()
      else reader.expression()
      reader.end()
    } catch (cause) {
      if (!(cause instanceof Outside)) throw cause
      return new TemplateFault({ template, line, fault: cause.fault })
    }
  }
  return undefined
}

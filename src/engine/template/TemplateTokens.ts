/* The tokens of a tag. */

const lexeme =
  /\s*(?:(?<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<number>\d+(?:\.\d+)?)|(?<name>[A-Za-z_]\w*)|(?<sign>==|!=|[^\s\w]|\w))/sy

/** A part of a tag. */
export interface Token {
  readonly kind: "string" | "number" | "name" | "sign" | "end"
  readonly text: string
}

/** The token after the last token of a tag. */
export const end: Token = { kind: "end", text: "the end of the tag" }

/** Reads the tokens inside a tag. */
export const tokensOf = (inside: string): ReadonlyArray<Token> => {
  const tokens: Array<Token> = []
  lexeme.lastIndex = 0
  for (let found = lexeme.exec(inside); found !== null; found = lexeme.exec(inside)) {
    for (const kind of ["string", "number", "name", "sign"] as const) {
      const text = found.groups?.[kind]
      if (text !== undefined) tokens.push({ kind, text })
    }
  }
  return tokens
}

/* The tags of a template, without the text between them. */

/** One `{{ … }}`, `{% … %}` or `{# … #}`. */
export interface Tag {
  readonly kind: "expression" | "statement" | "comment"
  /** The text between the delimiters, without the signs of whitespace control. */
  readonly inside: string
  /** The line of the opening delimiter. The first line is 1. */
  readonly line: number
}

const kinds = { "{{": "expression", "{%": "statement", "{#": "comment" } as const
const ends = { expression: "}}", statement: "%}", comment: "#}" } as const

/** Returns the index of the closing delimiter. A delimiter within a string literal does not count. */
const endOf = (source: string, from: number, end: string): number => {
  let quote = ""
  for (let at = from; at < source.length; at++) {
    const char = source[at]
    if (quote === "") {
      if (source.startsWith(end, at)) return at
      if (char === "\"" || char === "'") quote = char
    } else if (char === "\\") at++
    else if (char === quote) quote = ""
  }
  return source.length
}

/**
 * Reads the tags in order. A tag that is not closed extends to the end of the source. The engine refuses such a tag.
 */
export const tagsOf = (source: string): ReadonlyArray<Tag> => {
  const tags: Array<Tag> = []
  let [at, line] = [0, 1]
  const advance = (to: number) => {
    for (; at < to; at++) if (source[at] === "\n") line++
  }
  for (const opening = /\{[{%#]/g;;) {
    opening.lastIndex = at
    const found = opening.exec(source)
    if (found === null) return tags
    advance(found.index)
    const kind = kinds[found[0] as keyof typeof kinds]
    const from = at + 2
    const to = kind === "comment" ? source.indexOf("#}", from) : endOf(source, from, ends[kind])
    const end = to < 0 ? source.length : to
    tags.push({ kind, inside: source.slice(from, end).replace(/^[-+]/, "").replace(/[-+]$/, ""), line })
    advance(Math.min(source.length, end + 2))
  }
}

/** Highlights words. Returns the text unchanged for a stream without colours. */
export type Paint = (style: Style, text: string) => string

const codes = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], yellow: [33, 39], cyan: [36, 39] } as const

/** The styles of {@link Paint}. */
export type Style = keyof typeof codes

/** Returns every text unchanged. */
export const unpainted: Paint = (_, text) => text

/** Paints with the escape sequences that every terminal supports. */
export const painted: Paint = (style, text) => {
  const [on, off] = codes[style]
  return text === "" ? text : `\u001b[${on}m${text}\u001b[${off}m`
}

/** What is known about the place where a text is printed. */
export interface View {
  /** The columns of the terminal. Undefined if the text goes to a program or a file. */
  readonly columns: number | undefined
  readonly isTerminal: boolean
  readonly paint: Paint
  /** Whether to print times in RFC 3339 instead of how long ago they were. */
  readonly utc: boolean
  /** The current time in epoch seconds. */
  readonly now: number
}

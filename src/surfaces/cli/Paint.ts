/** How words are made to stand out; on a stream without colours they stay as they are. */
export type Paint = (style: Style, text: string) => string

const codes = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], yellow: [33, 39], cyan: [36, 39] } as const

/** What {@link Paint} can do. */
export type Style = keyof typeof codes

/** Leaves everything as it is. */
export const unpainted: Paint = (_, text) => text

/** Paints by the escape sequences every terminal knows. */
export const painted: Paint = (style, text) => {
  const [on, off] = codes[style]
  return text === "" ? text : `\u001b[${on}m${text}\u001b[${off}m`
}

/** Where something is printed. */
export interface View {
  /** Columns of the terminal; undefined where the reader is a program, or a file. */
  readonly columns: number | undefined
  readonly isTerminal: boolean
  readonly paint: Paint
  /** Times as they are, rather than how long ago. */
  readonly utc: boolean
  /** Epoch seconds. */
  readonly now: number
}

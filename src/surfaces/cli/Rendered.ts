import type { View } from "./Paint.ts"
import { unpainted } from "./Paint.ts"

/** The view for a text that a program reads or that is written to a file. */
const plain: View = { columns: undefined, isTerminal: false, paint: unpainted, utc: true, now: 0 }

/**
 * A text that depends on the place where it is printed. The code that prints the text calls `on` with that place. A
 * text that is inserted into another text has the form for programs.
 */
export class Rendered {
  readonly on: (view: View) => string
  constructor(on: (view: View) => string) {
    this.on = on
  }
  toString(): string {
    return this.on(plain)
  }
}

/** Puts several texts one below the other. */
export const stacked = (parts: ReadonlyArray<string | Rendered>, between: string): Rendered =>
  new Rendered((view) => parts.map((part) => typeof part === "string" ? part : part.on(view)).join(between))

import type { View } from "./Paint.ts"
import { unpainted } from "./Paint.ts"

/** How a program, or a file, is written to. */
const plain: View = { columns: undefined, isTerminal: false, paint: unpainted, utc: true, now: 0 }

/**
 * A text that depends on where it is printed. Whatever writes it asks for it there; where it is put into another text, it is
 * what a program would read.
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

/** Several of them, one below the other. */
export const stacked = (parts: ReadonlyArray<string | Rendered>, between: string): Rendered =>
  new Rendered((view) => parts.map((part) => typeof part === "string" ? part : part.on(view)).join(between))

import * as Effect from "effect/Effect"
import { UnknownWord } from "../domain/OperatorError.ts"

const filled = (text: string | undefined): string | undefined => text?.trim() === "" ? undefined : text?.trim()

/** Reads a word of a closed set. Answers `undefined` if it is absent. */
export const wordOf = <W extends string>(
  name: string,
  known: ReadonlyArray<W>,
  text: string | undefined
): Effect.Effect<W | undefined, UnknownWord> => {
  const word = filled(text)
  if (word === undefined) return Effect.succeed(undefined)
  const found = known.find((one) => one === word)
  return found === undefined ? new UnknownWord({ name, word, known }) : Effect.succeed(found)
}

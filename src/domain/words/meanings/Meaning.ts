/* What a word of the service means to an operator, and what the operator does about it. */

/**
 * The meaning of a word and the remedy, each in one or two sentences, and the page that says more, as a path below
 * `docs`. In the sentences, commands, keys and names of records are in backticks, and words in capital letters stand
 * for values.
 */
export type Meaning = readonly [meaning: string, remedy: string, page?: string]

/** A {@link Meaning} as an object. A member that the word does not have is absent. */
export interface Said {
  readonly meaning: string
  readonly remedy?: string
  readonly page?: string
}

/** Returns a meaning as an object. */
export const saidBy = (given: Meaning | string): Said => {
  if (typeof given === "string") return { meaning: given }
  const [meaning, remedy, page] = given
  return { meaning, remedy, ...(page === undefined ? {} : { page }) }
}

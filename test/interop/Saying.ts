/* What programs say, and what parts of the run compare with it. */

/** Fails, and says what was compared, unless both values have the same JSON. */
export const equal = (found: unknown, wanted: unknown, what: string): void => {
  const [left, right] = [JSON.stringify(found), JSON.stringify(wanted)]
  if (left !== right) throw new Error(`${what}: ${left}, and not ${right}`)
}

/** Returns the first line of a text with this part. Fails if there is none. */
export const lineWith = (text: string, part: string): string => {
  const line = text.split("\n").find((one) => one.includes(part))
  if (line === undefined) throw new Error(`there is nothing like ${part} in:\n${text}`)
  return line.trim()
}

/** Returns the message of the error of an act that must fail. */
export const refusalOf = async (act: Promise<unknown>): Promise<string> => {
  const said = await act.then(() => undefined, String)
  if (said === undefined) throw new Error("it was not refused")
  return said
}

/**
 * Returns a function that makes the anchors of the headings of one document, in their order, as the hosts of clones make
 * them. A heading that occurs again gets a number.
 */
export const anchorsOfDocument = (): (heading: string) => string => {
  const times = new Map<string, number>()
  return (heading) => {
    const anchor = heading.toLowerCase().replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, "").replaceAll(" ", "-")
    const before = times.get(anchor) ?? 0
    times.set(anchor, before + 1)
    return before === 0 ? anchor : `${anchor}-${before}`
  }
}

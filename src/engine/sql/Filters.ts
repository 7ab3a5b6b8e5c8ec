/** The functions that make the statements for every set of filters. The tests of the engines' query plans call them. */
export const makers: Array<() => void> = []

/**
 * Makes one statement for each set of filters, when the set is used for the first time. A single statement that tests
 * every filter for NULL could use no index. `make` is called with the names of the filters in use, in the order of
 * `names`. Of each group of `alternatives`, at most one filter is in use.
 */
export const perFilters = <K extends string, S>(
  names: ReadonlyArray<K>,
  make: (used: ReadonlyArray<K>) => S,
  ...alternatives: ReadonlyArray<ReadonlyArray<K>>
) => {
  makers.push(() => {
    for (let set = 0; set < 2 ** names.length; set++) {
      const used = names.filter((_, index) => (set & 2 ** index) > 0)
      if (alternatives.every((group) => used.filter((name) => group.includes(name)).length <= 1)) make(used)
    }
  })
  const made = new Map<string, S>()
  return (filters: { readonly [_ in K]?: unknown }): S => {
    const used = names.filter((name) => filters[name] !== undefined)
    const key = used.join()
    const known = made.get(key)
    if (known !== undefined) return known
    const fresh = make(used)
    made.set(key, fresh)
    return fresh
  }
}

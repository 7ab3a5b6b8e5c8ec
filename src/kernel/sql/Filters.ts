/** What makes a statement of each set of filters, for whoever wants to know how the engines go about them all. */
export const makers: Array<() => void> = []

/**
 * A statement for each set of filters in use, made when it is first asked for: one that tested every filter for NULL could
 * use no index. `make` is given the names of those that narrow, in the order of `names`.
 */
export const perFilters = <K extends string, S>(names: ReadonlyArray<K>, make: (used: ReadonlyArray<K>) => S) => {
  makers.push(() => {
    for (let set = 0; set < 2 ** names.length; set++) make(names.filter((_, index) => (set & 2 ** index) > 0))
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

/**
 * A statement for each set of filters in use, made when it is first asked for: one that tested every filter for NULL could
 * use no index. `make` is given the names of those that narrow, in the order of `names`.
 */
export const perFilters = <K extends string, S>(names: ReadonlyArray<K>, make: (used: ReadonlyArray<K>) => S) => {
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

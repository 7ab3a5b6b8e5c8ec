/** Returns a function that calls `make` once for each object, and remembers the result as long as the object lives. */
export const oncePer = <K extends object, V>(make: (key: K) => V): (key: K) => V => {
  const made = new WeakMap<K, { readonly value: V }>()
  return (key) => {
    const before = made.get(key)
    if (before !== undefined) return before.value
    const value = make(key)
    made.set(key, { value })
    return value
  }
}

import type { Field, Written } from "./Field.ts"

/* Fields that are made from another field. */

/** Makes a field for one to `most` values. On a command line, the flag or argument is given several times. */
export const each = <A>(field: Field<A>, most: number): Field<ReadonlyArray<A>> => {
  const valuesOf = (written: Written) => Array.isArray(written) ? written.map((one: string) => field.read(one)) : []
  return {
    ...field,
    form: "texts",
    absent: undefined,
    read: (written) => {
      const values = valuesOf(written)
      if (values.length > most) return undefined
      const found = values.filter((value) => value !== undefined)
      return found.length === 0 || found.length < values.length ? undefined : found
    },
    fault: (written) => {
      if (Array.isArray(written) && written.length > most) {
        return `takes at most ${most} values at once, not ${written.length}`
      }
      const wrong = valuesOf(written).indexOf(undefined)
      const text = Array.isArray(written) ? written[wrong] as string | undefined : undefined
      return text === undefined
        ? undefined
        : field.fault?.(text) ?? `takes ${field.takes}, which value ${wrong + 1} is not`
    }
  }
}

/** Makes a field whose value is made from the value of another field. */
export const mapped = <A, B>(field: Field<A>, map: (value: A) => B | undefined): Field<B> => ({
  ...field,
  absent: undefined,
  read: (written) => {
    const value = field.read(written)
    return value === undefined ? undefined : map(value)
  }
})

import { rfc3339 } from "../../../engine/Time.ts"

/*
 * Members of objects. A member without a value is left out, so that a program has to handle only one kind of absence.
 */

/** Returns `{ [name]: value }`, or an empty object. */
export const member = <K extends string, V>(name: K, value: V | undefined): { readonly [_ in K]?: V } =>
  value === undefined ? {} : { [name]: value } as { readonly [_ in K]?: V }

/** Returns epoch seconds as RFC 3339, in UTC and whole seconds, or an empty object. */
export const timeMember = <K extends string>(name: K, at: number | undefined) =>
  member(name, at === undefined || at < 0 ? undefined : rfc3339(at))

/** Returns a list, or an empty object if the list is empty. */
export const listMember = <K extends string, V>(name: K, values: ReadonlyArray<V>) =>
  member(name, values.length === 0 ? undefined : values)

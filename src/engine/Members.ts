import { rfc3339 } from "./Time.ts"

/*
 * Members of objects. A member without a value is left out, so that programs have to handle only one form of absence.
 */

/** Returns `{ [name]: value }`. Returns an empty object if there is no value. */
export const member = <K extends string, V>(name: K, value: V | undefined): { readonly [_ in K]?: V } =>
  value === undefined ? {} : { [name]: value } as { readonly [_ in K]?: V }

/**
 * Returns a member with epoch seconds as RFC 3339, in UTC and whole seconds. Returns an empty object if there is no
 * time.
 */
export const timeMember = <K extends string>(name: K, at: number | undefined) =>
  member(name, at === undefined || at < 0 ? undefined : rfc3339(at))

/** Returns a member with a list. Returns an empty object if the list is empty. */
export const listMember = <K extends string, V>(name: K, values: ReadonlyArray<V>) =>
  member(name, values.length === 0 ? undefined : values)

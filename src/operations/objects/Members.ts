import { rfc3339 } from "../../kernel/Time.ts"

/* Members of objects: one without a value is left out, so that a program need not tell absent from empty. */

/** `{ [name]: value }`, or nothing. */
export const member = <K extends string, V>(name: K, value: V | undefined): { readonly [_ in K]?: V } =>
  value === undefined ? {} : { [name]: value } as { readonly [_ in K]?: V }

/** Epoch seconds as RFC 3339, UTC, whole seconds; or nothing. */
export const timeMember = <K extends string>(name: K, at: number | undefined) =>
  member(name, at === undefined || at < 0 ? undefined : rfc3339(at))

/** A list, or nothing where it is empty. */
export const listMember = <K extends string, V>(name: K, values: ReadonlyArray<V>) =>
  member(name, values.length === 0 ? undefined : values)

/*
 * Recognises how encoders write a member without a value instead of leaving it out. Nothing else decides what counts as
 * absent in a request, in headers as in payloads.
 */

// The first instant of a calendar, in any time zone: what typed languages write for a time that was never set.
const unsetTime =
  /^(?:0001-01-01|0000-12-31)[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)?$/

/** Whether the value of an optional member stands for none: `null`, an empty text, or a time of year 1 that was never set. */
export const isAbsent = (value: unknown): boolean =>
  value === undefined || value === null || value === "" || (typeof value === "string" && unsetTime.test(value))

/** A JSON object without those of its optional members that are absent; the object itself if there are none. */
export const withoutAbsent = (
  members: { readonly [member: string]: unknown },
  optional: ReadonlyArray<string>
): { readonly [member: string]: unknown } => {
  const gone = optional.filter((name) => Object.hasOwn(members, name) && isAbsent(members[name]))
  return gone.length === 0
    ? members
    : Object.fromEntries(Object.entries(members).filter(([name]) => !gone.includes(name)))
}

/*
 * Recognises the values that some encoders write for a member that has no value, instead of leaving the member out.
 * This definition of "absent" applies to the headers and payloads of all requests.
 */

// Matches the first instant of a calendar, in any time zone. Some typed languages write this instant for a time that
// was never set.
const unsetTime =
  /^(?:0001-01-01|0000-12-31)[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)?$/

/**
 * Returns whether the value of an optional member means that there is no value: `null`, an empty text, or a time in the
 * year 1 that was never set.
 */
export const isAbsent = (value: unknown): boolean =>
  value === undefined || value === null || value === "" || (typeof value === "string" && unsetTime.test(value))

/**
 * Returns a JSON object without the optional members that count as absent. If no member does, returns the object
 * itself.
 */
export const withoutAbsent = (
  members: { readonly [member: string]: unknown },
  optional: ReadonlyArray<string>
): { readonly [member: string]: unknown } => {
  const gone = optional.filter((name) => Object.hasOwn(members, name) && isAbsent(members[name]))
  return gone.length === 0
    ? members
    : Object.fromEntries(Object.entries(members).filter(([name]) => !gone.includes(name)))
}

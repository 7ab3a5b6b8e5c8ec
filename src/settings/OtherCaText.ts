import type { OtherState } from "../domain/IssuerState.ts"

/* The text of a configuration file about the CAs of `signer.local_ca.others`. The rest of the file stays as it is. */

/** The keys of another CA that are written into the file. Keys with their default are left out. */
export interface OtherCaText {
  readonly state: OtherState
  readonly from: string
  readonly cert_path: string
  readonly key_path?: string | undefined
  readonly key_passphrase_file?: string | undefined
  readonly key_source?: "pkcs11" | "transit" | undefined
  readonly cross_cert_paths?: ReadonlyArray<string> | undefined
  /** The keys of `pkcs11`. */
  readonly pkcs11?: { readonly [key: string]: string | number } | undefined
  /** The keys of `transit`. */
  readonly transit?: { readonly [key: string]: string | number } | undefined
}

const valueText = (value: unknown): string =>
  Array.isArray(value) ? `[${value.map((one) => JSON.stringify(one)).join(", ")}]` : JSON.stringify(value)

const linesOf = (values: object): ReadonlyArray<string> =>
  Object.entries(values).flatMap(([key, value]) => value === undefined ? [] : [`${key} = ${valueText(value)}`])

/** Returns the table of another CA of a profile, as lines of the file. */
export const otherCaText = (profile: string, name: string, { pkcs11, transit, ...values }: OtherCaText): string => {
  const header = `profiles.${profile}.signer.local_ca.others.${name}`
  const below = Object.entries({ pkcs11, transit }).flatMap(([table, keys]) =>
    keys === undefined ? [] : ["", `[${header}.${table}]`, ...linesOf(keys)]
  )
  return [`[${header}]`, ...linesOf(values), ...below].join("\n")
}

/**
 * Returns the file with another CA retired. Returns undefined if the file has no table of this name with a line for the
 * state, as it is if the values are in an inline table or in variables.
 */
export const retiredIn = (text: string, profile: string, name: string): string | undefined => {
  const lines = text.split("\n")
  const header = new RegExp(
    `^\\s*\\[\\s*(?:profiles\\s*\\.\\s*"?${profile}"?\\s*\\.\\s*)?signer\\s*\\.\\s*local_ca\\s*\\.\\s*others\\s*\\.\\s*"?${name}"?\\s*\\]`
  )
  const isHeader = (line: string): boolean => /^\s*\[/.test(line)
  const own = lines.map((line, at) => header.test(line) && line.includes("profiles") ? at : -1).filter((at) => at >= 0)
  const shared = lines.map((line, at) => header.test(line) ? at : -1).filter((at) => at >= 0)
  const [start] = own.length > 0 ? own : shared
  if (start === undefined) return undefined
  const length = lines.slice(start + 1).findIndex(isHeader)
  const end = length < 0 ? lines.length : start + 1 + length
  const table = lines.slice(start, end)
  if (!table.some((line) => /^\s*state\s*=/.test(line))) return undefined
  const changed = table
    .filter((line) => !/^\s*from\s*=/.test(line))
    .map((line) => line.replace(/^(\s*state\s*=\s*)("[^"]*"|'[^']*')/, "$1\"retired\""))
  return [...lines.slice(0, start), ...changed, ...lines.slice(end)].join("\n")
}

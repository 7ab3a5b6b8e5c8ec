import * as Result from "effect/Result"
import type { DnsName } from "./Identifier.ts"
import { isWildcard, normalizeIdentifier } from "./Identifier.ts"

/**
 * What the accounts of a credential may ask for (docs/configure/credentials.md, "What a credential may ask for"). An
 * absent member restricts nothing. Times are epoch seconds.
 */
export interface CredentialScope {
  /** Patterns of names: `host.corp.example`, `*.corp.example` for one label, `**.corp.example` for any depth. */
  readonly names: ReadonlyArray<string> | undefined
  /** Whether wildcards may be ordered within `names`. It has no effect without `names`. */
  readonly wildcards: boolean | undefined
  /** The kinds of certificates that may be ordered. */
  readonly kinds: ReadonlyArray<string> | undefined
  /** The longest lifetime of a certificate. */
  readonly validitySeconds: number | undefined
  /** How many orders all accounts of the credential together may place within a day, without renewals. */
  readonly ordersPerDay: number | undefined
  /** How many accounts the credential may bind. */
  readonly maxAccounts: number | undefined
  /** From this time on, the credential binds no account. */
  readonly expiresAt: number | undefined
  /** Whether the names need no challenge. */
  readonly prevalidated: boolean | undefined
}

/** The scope of a credential without any restriction. */
export const noScope: CredentialScope = {
  names: undefined,
  wildcards: undefined,
  kinds: undefined,
  validitySeconds: undefined,
  ordersPerDay: undefined,
  maxAccounts: undefined,
  expiresAt: undefined,
  prevalidated: undefined
}

/** The scope of an account that may order nothing, because its scope is lost or cannot be read. */
export const lostScope: CredentialScope = { ...noScope, names: [] }

/** Returns the scope among the members of a credential. */
export const scopeIn = (
  { expiresAt, kinds, maxAccounts, names, ordersPerDay, prevalidated, validitySeconds, wildcards }: CredentialScope
): CredentialScope => ({
  names,
  wildcards,
  kinds,
  validitySeconds,
  ordersPerDay,
  maxAccounts,
  expiresAt,
  prevalidated
})

/** Returns a scope without the members that restrict nothing. */
export const statedScope = (scope: CredentialScope) =>
  Object.fromEntries(Object.entries(scope).filter(([, value]) => value !== undefined && value !== false)) as {
    readonly [M in keyof CredentialScope]?: NonNullable<CredentialScope[M]>
  }

/** Returns whether a scope restricts anything, or permits orders without challenges. */
export const isScoped = (scope: CredentialScope): boolean => Object.keys(statedScope(scope)).length > 0

/** The highest number of patterns of a credential. */
export const mostPatterns = 100

/**
 * Returns a pattern of names in lower case, or undefined if it is none. A pattern is a DNS name in the form of
 * certificates, optionally with `*.` or `**.` before it.
 */
export const namePattern = (text: string): string | undefined => {
  const [, stars = "", base = ""] = /^(\*\*?\.)?(.+)$/.exec(text.trim()) ?? []
  // The name is lowered only here, after it was found to be ASCII: U+212A, the Kelvin sign, has a k as its small letter.
  const name = normalizeIdentifier(base, { dns01Enabled: false })
  return Result.isSuccess(name) && name.success === base.toLowerCase() && !isWildcard(name.success)
    ? stars + name.success
    : undefined
}

/**
 * Returns whether a name is covered by a pattern. `*.a.example` covers the names one label below `a.example`, and
 * `**.a.example` covers the names at any depth below it. A wildcard is covered if every name that it stands for is.
 */
export const isCovered = (name: DnsName, patterns: ReadonlyArray<string>): boolean =>
  patterns.some((pattern) => {
    if (pattern.startsWith("**.")) return name.endsWith(pattern.slice(2))
    return pattern.startsWith("*.") ? name.slice(name.indexOf(".")) === pattern.slice(1) : name === pattern
  })

/** Returns the names that a scope does not cover. */
export const uncovered = (
  { names, wildcards }: CredentialScope,
  ordered: ReadonlyArray<DnsName>
): ReadonlyArray<DnsName> =>
  names === undefined
    ? []
    : ordered.filter((name) => !isCovered(name, names) || (isWildcard(name) && wildcards !== true))

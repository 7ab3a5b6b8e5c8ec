import type * as Result from "effect/Result"
import type { DerFault, DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"
import { DNS_NAME, latin1 } from "./Certificate.ts"

/** dNSName subtrees of a CA certificate, lower case. */
export interface NameConstraints {
  /** Undefined if no permitted subtree is of type dNSName, so that permitted subtrees do not limit names. */
  readonly permitted: ReadonlyArray<string> | undefined
  readonly excluded: ReadonlyArray<string>
}

/** Reads a nameConstraints value (RFC 5280 section 4.2.1.10); subtrees of other types do not affect DNS names. */
export const readNameConstraints = (value: Uint8Array): Result.Result<NameConstraints, DerFault> =>
  decode(value, (reader) => {
    const fields = reader.enter(Tag.sequence)
    const permitted = fields.next === 0xa0 ? readSubtrees(fields.enter(0xa0)) : []
    const excluded = fields.next === 0xa1 ? readSubtrees(fields.enter(0xa1)) : []
    fields.end()
    return { permitted: permitted.length === 0 ? undefined : permitted, excluded }
  })

const readSubtrees = (list: DerReader): ReadonlyArray<string> => {
  const names: Array<string> = []
  while (list.more) {
    const subtree = list.enter(Tag.sequence)
    if (subtree.next === DNS_NAME) names.push(latin1(subtree.content(DNS_NAME)).toLowerCase())
    else subtree.skip()
    if (subtree.more) subtree.fail("a subtree has bounds, which RFC 5280 does not allow")
  }
  return names
}

/**
 * The first name for which a certificate under these constraints would not be valid, or undefined. A base covers itself
 * and all names below it; with a leading dot, only the names below it. A wildcard is excluded if any name that it
 * matches is excluded.
 */
export const nameConstraintsViolation = (
  constraints: ReadonlyArray<NameConstraints>,
  names: ReadonlyArray<string>
): string | undefined =>
  names.find((name) =>
    constraints.some(({ excluded, permitted }) =>
      excluded.some((base) => isUnder(name, base) || isStoodFor(name, base))
      || (permitted !== undefined && !permitted.some((base) => isUnder(name, base)))
    )
  )

const isUnder = (name: string, base: string): boolean =>
  base === "" || (base.startsWith(".") ? name.endsWith(base) : name === base || name.endsWith(`.${base}`))

/** Whether a wildcard matches the base itself, so that some of the names it matches are excluded. */
const isStoodFor = (name: string, base: string): boolean =>
  name.startsWith("*.") && base.slice(Math.max(0, base.indexOf("."))) === name.slice(1) && !base.startsWith(".")

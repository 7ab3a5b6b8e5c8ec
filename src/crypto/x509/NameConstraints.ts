import type * as Result from "effect/Result"
import type { DerFault, DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"
import { element, oid, sequence, text } from "../asn1/DerWriter.ts"
import { DNS_NAME, latin1, only } from "./Certificate.ts"
import type { SubjectAttribute } from "./LeafContent.ts"
import { extension } from "./Part.ts"

/** The subtrees in a CA certificate that limit the names of leaves. They are in lower case. */
export interface NameConstraints {
  /** The permitted subtrees of type dNSName. Undefined if there are none; only `excluded` then limits names. */
  readonly permitted: ReadonlyArray<string> | undefined
  readonly excluded: ReadonlyArray<string>
  /**
   * The permitted subtrees of type directoryName, which limit subjects that are not empty. Undefined if there are none.
   */
  readonly permittedSubjects: ReadonlyArray<DirectoryBase> | undefined
  readonly excludedSubjects: ReadonlyArray<DirectoryBase>
}

/**
 * A directoryName as the text of its relative names. It covers every subject that begins with these relative names, so
 * an empty directoryName covers all.
 */
type DirectoryBase = ReadonlyArray<string>

interface Subtrees {
  readonly names: ReadonlyArray<string>
  readonly subjects: ReadonlyArray<DirectoryBase>
}

/** Reads the value of nameConstraints (RFC 5280 section 4.2.1.10). Subtrees of other types do not concern leaves. */
export const readNameConstraints = (value: Uint8Array): Result.Result<NameConstraints, DerFault> =>
  decode(value, (reader) => {
    const fields = reader.enter(Tag.sequence)
    const permitted = fields.next === 0xa0 ? readSubtrees(fields.enter(0xa0)) : nothing
    const excluded = fields.next === 0xa1 ? readSubtrees(fields.enter(0xa1)) : nothing
    fields.end()
    return {
      permitted: permitted.names.length === 0 ? undefined : permitted.names,
      excluded: excluded.names,
      permittedSubjects: permitted.subjects.length === 0 ? undefined : permitted.subjects,
      excludedSubjects: excluded.subjects
    }
  })

const IP_ADDRESS = 0x87

/**
 * Returns the critical nameConstraints extension that permits these DNS names and the names below them. It excludes
 * every IP address, because permitted DNS names do not restrict names of other types.
 */
export const permittedNames = (names: ReadonlyArray<string>): Uint8Array =>
  extension(
    oid("2.5.29.30"),
    true,
    sequence(
      element(0xa0, ...names.map((name) => sequence(text(DNS_NAME, name)))),
      // An address of zeros with a mask of zeros, in IPv4 and in IPv6.
      element(0xa1, ...[8, 32].map((octets) => sequence(element(IP_ADDRESS, new Uint8Array(octets)))))
    )
  )

const nothing: Subtrees = { names: [], subjects: [] }
const DIRECTORY_NAME = 0xa4

const readSubtrees = (list: DerReader): Subtrees => {
  const names: Array<string> = []
  const subjects: Array<DirectoryBase> = []
  while (list.more) {
    const subtree = list.enter(Tag.sequence)
    if (subtree.next === DNS_NAME) names.push(latin1(subtree.content(DNS_NAME)).toLowerCase())
    else if (subtree.next === DIRECTORY_NAME) subjects.push(only(subtree.enter(DIRECTORY_NAME), readDirectoryBase))
    else subtree.skip()
    if (subtree.more) subtree.fail("a subtree has bounds, which RFC 5280 does not allow")
  }
  return { names, subjects }
}

const readDirectoryBase = (reader: DerReader): DirectoryBase => {
  const found: Array<string> = []
  const relatives = reader.enter(Tag.sequence)
  while (relatives.more) {
    const texts: Array<string> = []
    const attributes = relatives.enter(Tag.set)
    while (attributes.more) {
      const attribute = attributes.enter(Tag.sequence)
      texts.push(textOf(attribute.oid(), latin1(attribute.content(attribute.next))))
    }
    // A relative name of a leaf has one attribute, whose text has no line feed. So it never equals a text of several
    // attributes.
    found.push(texts.join("\n"))
  }
  return found
}

/** Returns an attribute as a text that is equal for values that differ only in case and blanks (RFC 5280 section 7.1). */
const textOf = (type: string, value: string): string =>
  `${type}=${value.replaceAll(/[\t-\r ]+/g, " ").replaceAll(/^ | $/g, "").toLowerCase()}`

/**
 * Returns whether a leaf may have this subject under these constraints. An empty subject needs no check, because all
 * names are then in the subjectAltName.
 */
export const permitsSubject = (
  constraints: ReadonlyArray<Pick<NameConstraints, "permittedSubjects" | "excludedSubjects">>,
  subject: ReadonlyArray<SubjectAttribute>
): boolean => {
  if (constraints.length === 0 || subject.length === 0) return true
  const texts = subject.map(({ type, value }) => textOf(type, latin1(Buffer.from(value))))
  const covers = (base: DirectoryBase) => base.every((text, at) => text === texts[at])
  return constraints.every(({ excludedSubjects, permittedSubjects }) =>
    !excludedSubjects.some(covers) && (permittedSubjects === undefined || permittedSubjects.some(covers))
  )
}

/**
 * Returns the first name for which a certificate would not be valid under these constraints, or undefined. A base
 * covers itself and all names below it. A base with a leading dot covers only the names below it. A wildcard is
 * excluded if any name that it matches is excluded.
 */
export const nameConstraintsViolation = (
  constraints: ReadonlyArray<Pick<NameConstraints, "permitted" | "excluded">>,
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

/** Returns whether a wildcard matches the base itself. If it does, one of the names that it matches is excluded. */
const isStoodFor = (name: string, base: string): boolean =>
  name.startsWith("*.") && base.slice(Math.max(0, base.indexOf("."))) === name.slice(1) && !base.startsWith(".")

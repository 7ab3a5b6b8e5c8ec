import * as Result from "effect/Result"
import { hiddenIn } from "../engine/HiddenText.ts"
import type { Malformed } from "./AcmeError.ts"
import { InvalidContact, UnsupportedContact } from "./AcmeError.ts"
import type { AccountId } from "./Id.ts"

/** The status of an account. Nothing writes `revoked`, but old data may contain it; such an account is refused. */
export type AccountStatus = "valid" | "deactivated" | "revoked"

/** The words by which accounts are filtered. A blocked account counts as `valid` too, because it is so for ACME. */
export const accountFilterWords = ["valid", "blocked", "deactivated", "revoked"] as const

/** A word of {@link accountFilterWords}. */
export type AccountFilterWord = (typeof accountFilterWords)[number]

/** A row of `accounts`. `pubkey` is DER SubjectPublicKeyInfo. Times are epoch seconds. */
export interface Account {
  readonly id: AccountId
  readonly profile: string
  readonly pubkey: Uint8Array
  readonly status: AccountStatus
  readonly contact: ReadonlyArray<string>
  readonly termsOfServiceAgreed: boolean | undefined
  readonly lastSeenAt: number | undefined
  /** The address from which the last authenticated request came. */
  readonly lastSeenIp: string | undefined
  /** The credential with which the account was bound. It may have been deleted since. */
  readonly eabKid: string | undefined
  /** Since when an operator has blocked the account. Undefined if the account is not blocked. */
  readonly blockedAt: number | undefined
}

/** Returns the state of an account for operators. A blocked account is valid for ACME. */
export const accountState = (
  { blockedAt, status }: { readonly blockedAt?: unknown; readonly status: AccountStatus }
): AccountStatus | "blocked" => status === "valid" && blockedAt !== undefined ? "blocked" : status

/** The highest number of contacts of an account. */
export const maxContacts = 32
const scheme = /^mailto:/i
// Matches an addr-spec without header fields, lists or control characters (RFC 6068 allows header fields and lists, but
// RFC 8555 section 7.3 does not). A local part may have slashes, but if it begins with two, somebody has written the
// address as a URL with a host.
const address = /^(?!\.|\/\/)([^\s@,?<>()[\]\\:;"\p{Cc}]+)(?<!\.)@([^\s@,?<>()[\]\\:;"\p{Cc}]+)$/u
const label = /^(?!-)[A-Za-z0-9_\P{ASCII}-]{1,63}(?<!-)$/u

// The highest numbers of octets in a local part and in a whole address (RFC 5321 section 4.5.3.1).
const longestLocal = 64
const longestAddress = 254

/** Returns whether a text is one mail address and nothing else. */
export const isMailAddress = (text: string): boolean => {
  const [, local = "", domain = ""] = address.exec(text) ?? []
  return domain.replace(/\.$/, "").split(".").every((one) => label.test(one)) &&
    Buffer.byteLength(local) <= longestLocal && Buffer.byteLength(text) <= longestAddress &&
    hiddenIn(text) === undefined
}

const domain = /@(?:[^.]+\.)+([^.]+)\.?$/
const ownHost = /^local(?:host|domain)$/i

/**
 * Returns whether the mailbox of an address can be on another host. If the domain has no dot, or is below `localhost`,
 * the mailbox is on the mail host itself. With such an address, a client could make the service send mail to any local
 * user.
 */
const isElsewhere = (address: string): boolean => {
  const [, last] = domain.exec(address) ?? []
  return last !== undefined && !ownHost.test(last)
}

/** Decodes the percent escapes. If they are not UTF-8, returns the empty text, which is not an address. */
const percentDecoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return ""
  }
}

/**
 * Returns the distinct mail addresses among an account's contacts. Contacts in old rows may be any text. Contacts that
 * contain no mail address are left out.
 */
export const mailAddressesOf = (contacts: ReadonlyArray<string>): ReadonlyArray<string> => {
  const found = contacts.slice(0, maxContacts).flatMap((contact) => {
    const address = scheme.test(contact) ? percentDecoded(contact.slice("mailto:".length)) : ""
    return isMailAddress(address) && isElsewhere(address) ? [[address.toLowerCase(), address] as const] : []
  })
  return [...new Map(found).values()]
}

const trimmed = (text: string): string => {
  let [start, end] = [0, text.length]
  while (text[start] === " ") start++
  while (end > start && text[end - 1] === " ") end--
  return text.slice(start, end)
}

/**
 * Removes blanks at both ends and after the colon, because scripts leave blanks there. Other white space stays, and the
 * contact is then refused.
 */
const withoutBlanks = (contact: string): string => {
  const uri = trimmed(contact)
  return scheme.test(uri) ? `${uri.slice(0, "mailto:".length)}${trimmed(uri.slice("mailto:".length))}` : uri
}

/**
 * Removes blanks around the scheme and the address of each contact, and checks the contacts (RFC 8555 section 7.3 and
 * docs/reference/protocol.md, "Accounts"). There may be at most 32 contacts. Each must be a mailto URI without header
 * fields, with one address whose domain has a dot.
 */
export const checkContacts = (
  given: ReadonlyArray<string>
): Result.Result<ReadonlyArray<string>, UnsupportedContact | InvalidContact | Malformed> => {
  const contacts = given.slice(0, maxContacts + 1).map(withoutBlanks)
  if (contacts.length > maxContacts) {
    return Result.fail(new InvalidContact({ detail: `At most ${maxContacts} contacts are kept.` }))
  }
  for (const [index, contact] of contacts.entries()) {
    if (!scheme.test(contact)) return Result.fail(new UnsupportedContact({ index }))
    const address = percentDecoded(contact.slice("mailto:".length))
    const fault = Buffer.byteLength(address) > longestAddress
      ? `have an address of at most ${longestAddress} octets`
      : isMailAddress(address)
      ? isElsewhere(address) ? undefined : "have a domain with a dot, which is not this mail host's own"
      : "be one mail address without header fields"
    if (fault !== undefined) {
      return Result.fail(new InvalidContact({ detail: `The member contact[${index}] must ${fault}.` }))
    }
  }
  return Result.succeed(contacts)
}

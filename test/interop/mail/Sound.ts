import type { Message } from "./Exim.ts"
import { domain } from "./Exim.ts"

/* The rules that every mail of the service must fulfil, whatever it reports. */

export const check: (holds: boolean, what: string) => asserts holds = (holds, what) => {
  if (!holds) throw new Error(what)
}

/** Returns whether a message has a subject like this one. */
export const isOf = (subject: RegExp) => ({ headers }: Message): boolean => subject.test(headers["subject"]?.[0] ?? "")

const everybody = [["", `pki@${domain}`], ["Zweite für Post", `second@${domain}`]] as const

/** Headers that occur once, and their contents. */
const headers: { readonly [name: string]: RegExp } = {
  from: /./,
  to: /./,
  date: /^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} [+-]0000$/,
  subject: /^ACME Service \S+: \P{Cc}+$/u,
  "message-id": new RegExp(`^<[0-9a-f-]{36}@${domain}>$`),
  "mime-version": /^1\.0$/,
  "content-type": /^text\/plain; charset="?utf-8"?$/,
  "content-transfer-encoding": /^quoted-printable$/,
  "auto-submitted": /^auto-generated$/,
  precedence: /^bulk$/,
  "return-path": new RegExp(`^<acme@${domain}>$`),
  // The message came over TLS from a client that was signed in (RFC 3848).
  received: /\bwith esmtpsa\b/
}

/** The limit of RFC 5322 section 2.1.1, without the end of the line. */
const longestLine = 998
const longestSubject = 200

/** Checks a mail by all of these rules. `box` is the address of its mailbox. */
export const isSound = (
  message: Message,
  box: string,
  to: ReadonlyArray<readonly [name: string, address: string]> = everybody
): void => {
  const { at, defects, headers: given, text } = message
  const about = `the mail ${given["subject"]?.[0]}`
  check(defects.length === 0, `${about} has defects: ${defects.join(", ")}`)
  for (const [name, pattern] of Object.entries(headers)) {
    const [value = "", ...more] = given[name] ?? []
    check(more.length === 0 && pattern.test(value), `${about} has ${name}: ${[value, ...more].join(" | ")}`)
  }
  check([...given["subject"]?.[0] ?? ""].length <= longestSubject, `${about} has a longer subject`)
  check(given["x-mailer"] === undefined && given["bcc"] === undefined, `${about} has headers it should not have`)
  check(given["envelope-to"]?.[0] === box, `${about} is in the mailbox of ${box}`)
  check(
    JSON.stringify(message.from) === JSON.stringify([["ACME für alle", `acme@${domain}`]]),
    `${about} is from ${message.from.join()}`
  )
  check(JSON.stringify(message.to) === JSON.stringify(to), `${about} is to ${message.to.join()}`)
  check(message.isAscii && message.longestLine <= longestLine, `${about} has lines that a server may change`)
  const [, time = "", id = ""] = /\nTime: (\S+)\nDelivery: (\S+)\n$/.exec(text) ?? []
  check(Date.parse(time) === at * 1000, `${about} is dated ${at}, and tells of ${time}`)
  check(given["message-id"]?.[0] === `<${id}@${domain}>`, `${about} tells of ${id}`)
}

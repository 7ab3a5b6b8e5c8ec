import type { Taken } from "./MailServer.ts"

/* Checks whether every server and every mail program accepts a mail. */

const headers = [
  "auto-submitted",
  "content-transfer-encoding",
  "content-type",
  "date",
  "from",
  "message-id",
  "mime-version",
  "precedence",
  "subject",
  "to"
]

/** Returns the header lines of a mail, unfolded. */
const headOf = (raw: string): ReadonlyArray<readonly [name: string, value: string]> =>
  raw.slice(0, raw.indexOf("\r\n\r\n")).replaceAll(/\r\n(?=[ \t])/g, "").split("\r\n").map((line) => {
    const at = line.indexOf(":")
    return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()] as const
  })

/**
 * Returns the faults of a mail as it was sent: what a server might refuse or change, and what differs from the
 * documents.
 */
export const letterFaults = ({ mail, raw }: Taken): ReadonlyArray<string> => {
  const head = headOf(raw)
  const valueOf = (name: string) => head.find(([one]) => one === name)?.[1] ?? ""
  const lines = raw.split("\r\n")
  const body = raw.slice(raw.indexOf("\r\n\r\n") + 4)
  const wrong: ReadonlyArray<readonly [fault: string, isThere: boolean]> = [
    [`headers ${head.map(([name]) => name).join()}`, head.map(([name]) => name).toSorted().join() !== headers.join()],
    ["more than seven bits", /[^\t\r\n\x20-\x7e]/.test(raw)],
    ["a bare CR or LF", /\r(?!\n)|(?<!\r)\n/.test(raw)],
    ["a line over 998", lines.some((line) => line.length > 998)],
    ["a line of the body over 76", body.split("\r\n").some((line) => line.length > 76)],
    ["Message-ID", !/^<[0-9a-f-]{36}@[A-Za-z0-9.-]+>$/.test(valueOf("message-id"))],
    ["Date", !/^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} \+0000$/.test(valueOf("date"))],
    ["Auto-Submitted", valueOf("auto-submitted") !== "auto-generated"],
    ["Precedence", valueOf("precedence") !== "bulk"],
    ["MIME-Version", valueOf("mime-version") !== "1.0"],
    ["Content-Type", valueOf("content-type") !== "text/plain; charset=utf-8"],
    ["Content-Transfer-Encoding", valueOf("content-transfer-encoding") !== "quoted-printable"],
    ["another part", mail.html !== false || mail.attachments.length > 0],
    ["a control character in the subject", /\p{Cc}/u.test(mail.subject ?? "\0")],
    ["a space at the end of a line of the head", / \r\n/.test(raw.slice(0, raw.indexOf("\r\n\r\n") + 2))],
    ["a subject over 200", [...mail.subject ?? ""].length > 200],
    ["hidden recipients", mail.bcc !== undefined || mail.cc !== undefined]
  ]
  return wrong.flatMap(([fault, isThere]) => isThere ? [fault] : [])
}

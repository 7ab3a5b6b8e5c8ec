import { escapeHidden } from "../../engine/HiddenText.ts"
import { facilities } from "../../settings/AuditTable.ts"
import type { PushedRow } from "./AuditReceiver.ts"

/* The form of a row of the audit trail as a message of syslog (RFC 5424). */

/** What all messages of an installation have in common. */
export interface SyslogSettings {
  readonly facility: keyof typeof facilities
  readonly app_name: string
  readonly enterprise_number: number
}

/** The severities of an action that succeeded, and of one that failed (RFC 5424 section 6.2.1). */
const severities = { success: 6, failure: 4 } as const

/**
 * The highest number of octets of a message. A receiver need not take more than 8192 (RFC 5425 section 4.3.1), and
 * rsyslog takes 8096 unless it is told otherwise.
 */
const longestMessage = 8000
const longestHost = 255
const longestMessageId = 32

/**
 * Returns a value as it stands between quotes (RFC 5424 section 6.3.3). Control characters become JSON escapes, so that
 * a receiver that writes lines writes one line.
 */
const quoted = (text: string): string => escapeHidden(text).replaceAll(/["\\\]]/g, "\\$&")

const parameter = (name: string, value: unknown): string =>
  ` ${name}="${quoted(typeof value === "string" ? value : JSON.stringify(value))}"`

const octets = (text: string): number => Buffer.byteLength(text)

/** Returns visible ASCII characters for the header. */
const visible = (text: string, longest: number): string =>
  text.replaceAll(/[^\x21-\x7e]/g, "?").slice(0, longest) || "-"

/**
 * Returns the members of a row as parameters, in the order in which they find room. Members that may be long come last.
 * The time is in the header.
 */
const parametersOf = ({ detail, identifiers, userAgent, ...short }: PushedRow) => [
  ...Object.entries(short).filter(([name, value]) => name !== "createdAt" && value !== undefined),
  ...userAgent === undefined ? [] : [["userAgent", userAgent] as const],
  ...detail === undefined ? [] : [["detail", detail] as const],
  ...identifiers.map((identifier) => ["identifier", identifier] as const)
]

/**
 * Returns a row as a message. `host` is the name of the installation. A parameter that finds no room is left out, and
 * the parameter `omitted` has its name; `id` always has room, so the whole row can be found.
 */
export const messageOf = (row: PushedRow, host: string, settings: SyslogSettings): string => {
  const { app_name, enterprise_number, facility } = settings
  const severity = row.outcome === "failure" ? severities.failure : severities.success
  const header = [
    `<${8 * facilities[facility] + severity}>1`,
    row.createdAt,
    visible(host, longestHost),
    app_name,
    "-",
    visible(row.event, longestMessageId)
  ].join(" ")
  const text = `${row.event} (${row.outcome})`.replaceAll(/[^\x20-\x7e]/g, "?")
  const all = parametersOf(row)
  const names = [...new Set(all.map(([name]) => name))]
  let left = longestMessage -
    octets(`${header} [audit@${enterprise_number}] ${text}${parameter("omitted", names.join(" "))}`)
  const omitted = new Set<string>()
  const kept = all.flatMap(([name, value]) => {
    const written = parameter(name, value)
    if (octets(written) > left) {
      omitted.add(name)
      return []
    }
    left -= octets(written)
    return [written]
  })
  const note = omitted.size === 0 ? "" : parameter("omitted", [...omitted].join(" "))
  return `${header} [audit@${enterprise_number}${kept.join("")}${note}] ${text}`
}

/** Returns a message with its length before it (RFC 5425 section 4.3). */
export const frameOf = (message: string): string => `${octets(message)} ${message}`

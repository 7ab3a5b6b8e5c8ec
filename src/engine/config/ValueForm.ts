import * as Option from "effect/Option"
import { escapeHidden } from "../HiddenText.ts"
import { parseCidr, parseNameserver } from "../net/Address.ts"
import { isExemption, parseProxy } from "../net/Proxy.ts"
import { isDnsName, parseBindAddress } from "../net/SocketAddress.ts"
import { parseRfc3339 } from "../Time.ts"

/** How a text value must look. */
export interface Form {
  /** A noun phrase for the reference, such as "URL". */
  readonly says: string
  /**
   * Returns what is wrong with a text: a sentence without a subject ("must be …"). Returns `undefined` if nothing is
   * wrong. The sentence quotes the text only if no key of this form is a secret.
   */
  readonly fault: (text: string) => string | undefined
  /**
   * Whether a text names a file. A relative path begins in the directory of the process that reads the configuration.
   */
  readonly isPath?: boolean
  /** Whether blanks around a text are ignored. */
  readonly isTrimmed?: boolean
}

const longestQuoted = 64

/**
 * Returns a value in quotes, for a message. Returns undefined if the value may contain a secret that was written at the
 * wrong key, such as the URL of a database.
 */
export const quoteOf = (text: string): string | undefined =>
  text.length > longestQuoted || !/^[\x21-\x7e]+$/.test(text) || /[@/?]|(?<!:):(?!:)/.test(text)
    ? undefined
    : escapeHidden(JSON.stringify(text))

/** Makes a form from a test, and from the message about texts that fail the test. */
export const form = (says: string, test: (text: string) => boolean, message: string): Form => ({
  says,
  fault: (text) => test(text) ? undefined : message
})

/** Returns a form that also accepts the empty text. */
export const orEmpty = (inner: Form): Form => ({
  ...inner,
  says: `${inner.says}, or empty`,
  fault: (text) => text === "" ? undefined : inner.fault(text)
})

/** Any text. */
export const anyText: Form = form("text", () => true, "")

/** The path of a file. `settings/Placed.ts` makes a relative path absolute; `~` is not expanded. */
export const path: Form = {
  ...form("path", (text) => text !== "" && !text.includes("\0"), "must be a path, and not empty"),
  isPath: true
}

/** `[::]:3000`, `127.0.0.1:0`, `host:3000`. */
export const bindAddress: Form = form(
  "`host:port`",
  (text) => parseBindAddress(text) !== undefined,
  "must be host:port, where an IPv6 address stands in brackets and the port is 0 to 65535"
)

/** Address of a DNS server. */
export const resolver: Form = form(
  "address, `address:port` or `[v6]:port`",
  (text) => Option.isSome(parseNameserver(text)),
  "must be an IP address, address:port or [v6]:port; a host name is not accepted"
)

/** One entry of an address list. */
export const addressOrCidr: Form = form(
  "addresses or CIDR blocks",
  (text) => Option.isSome(parseCidr(text)),
  "must be an IP address or a CIDR block such as 10.0.0.0/8"
)

/** DNS name of letters, digits and hyphens. */
export const dnsName: Form = form("DNS names", isDnsName, "must be a DNS name")

/** Two letters. */
export const country: Form = form("two letters", (text) => /^[A-Za-z]{2}$/.test(text), "must be two letters")

/** 1 to 64 characters. */
export const commonName: Form = form(
  "1 to 64 characters",
  (text) => text !== "" && [...text].length <= 64,
  "must have 1 to 64 characters"
)

/** A lower-case scheme and an authority. All characters must be allowed both in a URL and in a Link header. */
const absolute = /^https?:\/\/(?![/?#@])[!#-;=?-[\]_a-z~]+$/

/** Absolute `http` or `https` URL. */
export const httpUrl: Form = form(
  "absolute http or https URL",
  (text) => absolute.test(text) && URL.canParse(text),
  "must be an absolute http or https URL"
)

/** An absolute URL to which paths are appended. */
export const baseUrl: Form = {
  says: "absolute http or https URL without trailing slash, query, fragment and user part",
  fault: (text) => {
    const fault = httpUrl.fault(text)
    if (fault !== undefined) return fault
    if (/[?#]/.test(text)) return "must have no query and no fragment"
    if (/^https?:\/\/[^/]*@/.test(text)) return "must have no user part"
    return text.endsWith("/") ? "must not end in a slash" : undefined
  }
}

/** The origin of scripts in the form that browsers use, or every origin. */
export const origin: Form = {
  says: "`https://` or `http://` origin: scheme, host and port as browsers write them, or `*`",
  fault: (text) => {
    if (text === "*") return undefined
    if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
      return "must be an origin, such as https://tool.example.org, or *"
    }
    if (text.includes("*")) return "must be one origin without a wildcard, or * alone"
    const written = new URL(text).origin
    return written === text ? undefined : `must be written as browsers do: ${written}`
  }
}

/** The absolute URL of a service, to which the paths of that service are appended. */
export const serviceUrl: Form = form(
  "absolute http or https URL without query, fragment and user part",
  (text) => httpUrl.fault(text) === undefined && !/[?#]/.test(text) && !/^https?:\/\/[^/]*@/.test(text),
  "must be an absolute http or https URL without query, fragment and user part"
)

/** URL of a forward proxy. */
export const proxyUrl: Form = form(
  "`http://` URL of a proxy",
  (text) => parseProxy(text) !== undefined,
  "must be the http:// URL of a proxy, such as http://proxy.example.org:3128"
)

/** One entry of a list of destinations for which no proxy is used. */
export const exemption: Form = form(
  "`*`, domains, addresses or CIDR blocks",
  isExemption,
  "must be *, a domain, an address or a CIDR block, without a port"
)

/** A secret in standard base64. */
export const base64Secret: Form = form(
  "standard base64",
  (text) => text !== "" && Buffer.from(text, "base64").toString("base64") === text,
  "must be standard base64"
)

/** Labels of letters, digits, hyphens and underscores, with or without a final dot. */
export const labels = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.?$/i

/** Octets in hexadecimal. */
export const hexadecimal: Form = form(
  "hexadecimal",
  (text) => /^(?:[0-9a-fA-F]{2})+$/.test(text),
  "must be octets in hexadecimal, two digits for each"
)

/** The name of a zone. */
export const zoneName: Form = {
  ...form(
    "DNS name with a final dot",
    (text) => text.endsWith(".") && labels.test(text) && text.length <= 254,
    "must be a DNS name with a final dot"
  ),
  isTrimmed: true
}

/** The name of a key. */
export const keyName: Form = {
  ...form("DNS name", (text) => labels.test(text) && text.length <= 254, "must be a DNS name"),
  isTrimmed: true
}

/** `host:port` of a server to which something is sent. */
export const hostPort: Form = form(
  "`host:port`",
  (text) => (parseBindAddress(text)?.port ?? 0) > 0,
  "must be host:port, where an IPv6 address stands in brackets"
)

/** A field name of HTTP (RFC 9110 section 5.1). */
export const headerName: Form = form(
  "name of a header",
  (text) => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(text),
  "must be the name of a header"
)

/** The name of a field or role in an inventory. */
export const fieldName: Form = form(
  "letters, digits, `_` and `-`",
  (text) => /^[A-Za-z0-9_-]+$/.test(text),
  "must have letters, digits, _ and - only"
)

/**
 * An absolute URL without a user part, exactly as a URL parser writes it. If another spelling is refused, the refusal
 * quotes the URL in this form.
 */
export const normalUrl: Form = {
  says: "absolute http or https URLs in normal form without user part",
  fault: (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (url === undefined || !/^https?:$/.test(url.protocol)) return "must be an absolute http or https URL"
    const [hasUser, isNormal] = [url.username !== "" || url.password !== "", url.href === text]
    url.username = ""
    url.password = ""
    if (hasUser) return `must have no user part; the normal form is ${url.href}`
    return isNormal ? undefined : `must be in normal form, which is ${url.href}`
  }
}

/** An RFC 3339 time. */
export const time: Form = form(
  "RFC 3339 time",
  (text) => parseRfc3339(text) !== undefined,
  "must be an RFC 3339 time such as 2027-01-31T06:00:00Z"
)

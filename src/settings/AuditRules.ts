import { isLoopbackHost } from "../engine/net/SocketAddress.ts"
import type { Finding, Subject } from "./Finding.ts"

/* The rules for the receivers of the audit trail (docs/contribute/decisions/audit-push.md). */

const clientPair = ({ config: { audit: { syslog } } }: Subject): ReadonlyArray<Finding> => {
  const [cert, key] = ["audit.syslog.cert_path", "audit.syslog.key_path"]
  if ((syslog.cert_path === "") === (syslog.key_path === "")) return []
  const [alone, other] = syslog.cert_path === "" ? [key, cert] : [cert, key]
  return [{ key: other, message: `must be set as well while ${alone} is`, involves: [cert, key] }]
}

const encrypted = ({ config: { audit: { http: { url } } } }: Subject): ReadonlyArray<Finding> =>
  url === "" || url.startsWith("https:") || isLoopbackHost(new URL(url).hostname) ? [] : [{
    key: "audit.http.url",
    message: "must begin with https://, unless its host is a loopback address: rows and the token would be readable",
    involves: ["audit.http.url"]
  }]

/** Returns every fault of `[audit.syslog]` and `[audit.http]`. */
export const auditFindings = (subject: Subject): ReadonlyArray<Finding> => [
  ...clientPair(subject),
  ...encrypted(subject)
]

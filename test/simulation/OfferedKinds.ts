import type { X509Certificate } from "node:crypto"

/* The kinds of certificates that the service offers in a simulation, and what a certificate of each kind must contain. */

const hourSeconds = 3600
const daySeconds = 24 * hourSeconds
const usages = { server: "1.3.6.1.5.5.7.3.1", client: "1.3.6.1.5.5.7.3.2" }

const contents = new Map([
  ["default", { seconds: 90 * daySeconds, usages: [usages.server] }],
  ["brief", { seconds: 2 * daySeconds, usages: [usages.server] }],
  ["mutual", { seconds: daySeconds, usages: [usages.server, usages.client] }]
])

/** The names of the kinds. */
export const kindNames: ReadonlyArray<string> = [...contents.keys()]

/** The sections of the configuration that add these kinds. */
export const kindsToml = `
[certificates.kinds.default]
description = "90 days"
[certificates.kinds.brief]
description = "two days"
validity = "2d"
[certificates.kinds.mutual]
description = "one day, for clients too"
validity = "1d"
usages = ["server_auth", "client_auth"]
`

// A certificate begins an hour before it is signed, so that hosts whose clocks are behind accept it.
const backdatedSeconds = hourSeconds

/** Returns how many seconds a certificate is valid from the moment at which it was signed. */
export const lifetimeOf = ({ validFromDate, validToDate }: X509Certificate): number =>
  (validToDate.getTime() - validFromDate.getTime()) / 1000 - backdatedSeconds

/** Returns why a certificate is not of a kind, if it is not. */
export const kindFaultOf = (leaf: X509Certificate, kind: string): string | undefined => {
  const content = contents.get(kind)
  if (content === undefined) return `there is no kind ${kind}`
  const found = leaf.keyUsage ?? []
  if (found.toSorted().join() !== content.usages.toSorted().join()) return `it has the usages ${found.join(", ")}`
  return lifetimeOf(leaf) > content.seconds ? `it lives for ${lifetimeOf(leaf)} s` : undefined
}

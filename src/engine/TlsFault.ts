/* Explains a failed TLS connection: the runtime's message, with advice for this service. */

/** Matches the runtime's advice. It concerns options of Node.js that this service does not use. */
const advice = /; if the root CA is installed locally.*$/s

const untrusted = /self-signed certificate|unable to (?:get|verify) /

/** Matches a message of OpenSSL. Only the reason in it helps a reader. */
const ofOpenssl = /:SSL routines:[^:]*:([^:]+):/

/** Returns the message of a failure without the runtime's advice. */
export const withoutAdvice = (message: string): string => message.replace(advice, "")

/** The roots that a connection trusts in addition to the public roots, and the configuration key that sets them. */
export interface NamedRoots {
  readonly key: string
  readonly isSet: boolean
}

/**
 * Returns the message about a failed handshake. If no trusted CA signed the certificate, the message names the setting
 * that can help. A connection without such a setting trusts the roots in the file that the variable NODE_EXTRA_CA_CERTS
 * names.
 */
export const tlsFault = (message: string, roots?: NamedRoots): string => {
  const plain = withoutAdvice(message)
  const [, reason] = ofOpenssl.exec(plain) ?? []
  if (reason !== undefined) return `the TLS handshake failed: ${reason}`
  if (!untrusted.test(plain)) return plain
  if (roots === undefined) return `${plain}; NODE_EXTRA_CA_CERTS may name a file with its CA`
  return `${plain}; ${roots.key} ${roots.isSet ? "does not have its CA" : "may name a file with its CA"}`
}

/* Explains a TLS connection that failed: the runtime's message, with what can be done about it here. */

/** The runtime's advice. It is about options of Node.js, which this service does not use. */
const advice = /; if the root CA is installed locally.*$/s

const untrusted = /self-signed certificate|unable to (?:get|verify) /

/** A message of OpenSSL. Only the reason in it is of use to a reader. */
const ofOpenssl = /:SSL routines:[^:]*:([^:]+):/

/** The message of a failure without the runtime's advice. */
export const withoutAdvice = (message: string): string => message.replace(advice, "")

/** Which roots a connection trusts beside the public ones, and which key of the configuration names them. */
export interface NamedRoots {
  readonly key: string
  readonly isSet: boolean
}

/**
 * The message of a failed handshake. If no trusted CA has signed the certificate, it names the setting that can help.
 * Connections without a setting of their own trust the roots of the variable NODE_EXTRA_CA_CERTS.
 */
export const tlsFault = (message: string, roots?: NamedRoots): string => {
  const plain = withoutAdvice(message)
  const [, reason] = ofOpenssl.exec(plain) ?? []
  if (reason !== undefined) return `the TLS handshake failed: ${reason}`
  if (!untrusted.test(plain)) return plain
  if (roots === undefined) return `${plain}; NODE_EXTRA_CA_CERTS may name a file with its CA`
  return `${plain}; ${roots.key} ${roots.isSet ? "does not have its CA" : "may name a file with its CA"}`
}

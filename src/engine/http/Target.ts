/** Where a request goes. */
export interface Target {
  /** Path and query, exactly as received. */
  readonly target: string
  /** The authority, if the target names one. It then replaces the Host field (RFC 9112 section 3.2.2). */
  readonly host: string | undefined
}

const scheme = /^https?:\/\//i
const authority = /^(?:\[[0-9a-f:.]+\]|[\w.~!$&'()*+,;=%-]+)(?::[0-9]{0,5})?$/i
const slash = 0x2f

/**
 * Reads a request target in origin or absolute form (RFC 9112 sections 3.2.1 and 3.2.2). Both forms give the same path
 * and query, and routes, policies and signatures see nothing else. Any other text is taken as it is, and matches no
 * route. `undefined` for an absolute form without a host or with a user part, which is an error (RFC 9110 sections
 * 4.2.1 and 4.2.4).
 */
export const readTarget = (text: string): Target | undefined => {
  if (text.charCodeAt(0) === slash) return { target: text, host: undefined }
  const prefix = scheme.exec(text)?.[0]
  if (prefix === undefined) return { target: text, host: undefined }
  const rest = text.slice(prefix.length)
  const end = rest.search(/[/?#]/)
  const host = end < 0 ? rest : rest.slice(0, end)
  if (!authority.test(host)) return undefined
  const behind = rest.slice(host.length)
  return { target: behind.startsWith("/") ? behind : `/${behind}`, host }
}

const longestLogged = 512

const masked = (parameter: string): string => {
  const equals = parameter.indexOf("=")
  return equals < 0 ? "***" : `${parameter.slice(0, equals)}=***`
}

/**
 * Path and query for the log, at most 512 characters. Values of the query are masked: a form sent with the wrong method
 * puts a password there, and so does a user who mistakes one field for another.
 */
export const loggedTarget = ({ path, target }: { readonly path: string; readonly target: string }): string => {
  if (target.length === path.length) return target.slice(0, longestLogged)
  const query = target.slice(path.length + 1, path.length + longestLogged)
  return `${path}?${query.split("&").map(masked).join("&")}`.slice(0, longestLogged)
}

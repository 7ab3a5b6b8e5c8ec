/* The URL of a PostgreSQL database. Like libpq's, it may name several servers: `postgres://u@h1:5432,h2:5433/db`. */

/** Which servers are accepted, in libpq's words. */
export const sessionAttributes = ["any", "read-write", "primary", "standby"] as const

/** Which servers are accepted. */
export type SessionAttributes = (typeof sessionAttributes)[number]

/** The parameter of the URL that says which servers are accepted. */
export const sessionAttributesName = "target_session_attrs"

interface Parts {
  readonly before: string
  readonly hosts: ReadonlyArray<string>
  readonly after: string
}

const partsOf = (url: string): Parts => {
  const [, before = "", hosts = "", after = ""] = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/is.exec(url) ?? []
  return { before, hosts: hosts.split(","), after }
}

/** Returns the URL of each server that a URL names. */
export const urlsOfServers = (url: string): ReadonlyArray<string> => {
  const { after, before, hosts } = partsOf(url)
  return hosts.length === 1 ? [url] : hosts.map((host) => `${before}${host}${after}`)
}

/** Returns whether a list of several servers has an empty place. */
export const lacksHost = (url: string): boolean => {
  const { hosts } = partsOf(url)
  return hosts.length > 1 && hosts.some((host) => host === "" || host.startsWith(":"))
}

/** Changes the URL of the first server, and returns the URL of all servers with this change. */
export const withAllServers = (url: string, change: (one: string) => string): string => {
  const { hosts } = partsOf(url)
  const changed = change(urlsOfServers(url)[0] ?? url)
  if (hosts.length === 1) return changed
  const { after, before } = partsOf(changed)
  return `${before}${hosts.join(",")}${after}`
}

const isSessionAttributes = (word: string): word is SessionAttributes =>
  (sessionAttributes as ReadonlyArray<string>).includes(word)

/**
 * Returns which servers a URL accepts. If the URL does not say this, one server is accepted in any state, and
 * `ofSeveral` applies to several servers. Returns undefined for an unknown word.
 */
export const sessionAttributesOf = (
  url: string,
  ofSeveral: SessionAttributes = "read-write"
): SessionAttributes | undefined => {
  const [first = url, ...others] = urlsOfServers(url)
  const word = new URL(first).searchParams.get(sessionAttributesName) ?? (others.length > 0 ? ofSeveral : "any")
  return isSessionAttributes(word) ? word : undefined
}

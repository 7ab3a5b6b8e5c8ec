import * as Redacted from "effect/Redacted"
import { comparable, makeAddressSet, parseAddress, parseCidr } from "./Address.ts"

/*
 * Forward proxies (docs/operate/service.md, "Through a forward proxy"): how they are written, and which requests use
 * them.
 */

/** A forward proxy. */
export interface ForwardProxy {
  /** A name or an address literal. An IPv6 address has no brackets. */
  readonly host: string
  readonly port: number
  /** The value of Proxy-Authorization, if the URL has a user part. */
  readonly authorization: Redacted.Redacted<string> | undefined
}

const bare = (host: string): string => host.replace(/^\[(.*)\]$/, "$1")

/** Reads the `http://` URL of a forward proxy. Returns `undefined` for anything else. */
export const parseProxy = (text: string): ForwardProxy | undefined => {
  if (!/^http:\/\/[^/?#\s]+\/?$/i.test(text) || !URL.canParse(text)) return undefined
  const { hostname, password, port, username } = new URL(text)
  const user = username === "" && password === "" ? undefined : [username, password].map(unescaped)
  if (user?.includes(undefined) === true) return undefined
  return {
    host: bare(hostname),
    port: port === "" ? 80 : Number(port),
    authorization: user && Redacted.make(`Basic ${Buffer.from(user.join(":")).toString("base64")}`)
  }
}

const unescaped = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Returns the URL of a proxy without its user part. */
export const maskedProxy = (text: string): string => text.replace(/^(http:\/\/)[^/]*@/i, "$1")

const domain = /^\.?(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/i

/**
 * Returns whether a text is a valid entry of a list of hosts that are reached directly: `*`, a domain, an address or a
 * range, without a port.
 */
export const isExemption = (text: string): boolean =>
  text === "*" || parseCidr(text)._tag === "Some" || (domain.test(text) && parseAddress(text)._tag === "None")

/**
 * Makes a function that returns whether a host is reached directly. A domain, with or without a leading dot, stands for
 * itself and for all names below it, as in other programs that read `NO_PROXY`. Ranges are compared with literal
 * addresses. Other entries match no host.
 */
export const makeExempt = (entries: ReadonlyArray<string>): (host: string) => boolean => {
  const isAll = entries.includes("*")
  const inRange = makeAddressSet(entries)
  const isLoopback = makeAddressSet(["127.0.0.0/8", "::1/128"])
  const domains = entries.filter((entry) => domain.test(entry)).map((entry) => entry.toLowerCase().replace(/^\./, ""))
  return (host) => {
    const address = comparable(bare(host))
    if (address !== undefined) return isAll || isLoopback(address) || inRange(address)
    const name = host.toLowerCase().replace(/\.$/, "")
    return isAll || name === "localhost" || name.endsWith(".localhost") ||
      domains.some((entry) => name === entry || name.endsWith(`.${entry}`))
  }
}

/** Where proxies are named: in the keys `proxy.*`, or in the environment variables that many programs share. */
export interface ProxySource {
  readonly http_url: string
  readonly https_url: string
  readonly no_proxy: ReadonlyArray<string>
}

/** The proxies in force, as they are shown to operators. */
export interface ProxiesShown {
  readonly http: string | undefined
  readonly https: string | undefined
  readonly noProxyEntries: number
  readonly source: "config" | "environment" | "both"
}

/** Returns the proxy for a request, by its scheme and host. */
export type ProxyOf = (scheme: "http" | "https", host: string) => ForwardProxy | undefined

const routes = ({ http_url, https_url, no_proxy }: ProxySource): ProxyOf => {
  const proxies = { http: parseProxy(http_url), https: parseProxy(https_url) }
  const isExempt = makeExempt(no_proxy)
  return (scheme, host) => proxies[scheme] !== undefined && !isExempt(host) ? proxies[scheme] : undefined
}

/**
 * Decides how outbound requests are routed. For each key, the configuration has precedence over the environment.
 * `configured` is for requests that use a proxy only if the configuration itself names it.
 */
export const makeProxies = (keys: ProxySource, variables: ProxySource) => {
  const taken: Array<"config" | "environment"> = []
  const pick = <A extends string | ReadonlyArray<string>>(own: A, shared: A): A => {
    if (own.length === 0 && shared.length === 0) return own
    taken.push(own.length > 0 ? "config" : "environment")
    return own.length > 0 ? own : shared
  }
  const [http_url, https_url] = [pick(keys.http_url, variables.http_url), pick(keys.https_url, variables.https_url)]
  const isUsed = http_url !== "" || https_url !== ""
  const no_proxy = pick(keys.no_proxy, variables.no_proxy)
  const shown = (url: string) => url === "" ? undefined : maskedProxy(url)
  const shownAs: ProxiesShown | undefined = isUsed
    ? {
      http: shown(http_url),
      https: shown(https_url),
      noProxyEntries: no_proxy.length,
      source: taken.includes("config") ? taken.includes("environment") ? "both" : "config" : "environment"
    }
    : undefined
  return {
    outbound: routes({ http_url, https_url, no_proxy }),
    configured: routes(keys),
    shown: shownAs
  }
}

/** Uses no proxy for any request. */
export const noProxies: ProxyOf = () => undefined

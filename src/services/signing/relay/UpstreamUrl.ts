import * as Option from "effect/Option"
import { makeAddressPolicy, parseAddress } from "../../../engine/net/Address.ts"
import { metadataServices } from "../../../engine/net/MetadataServices.ts"
import { plain } from "./UpstreamAnswer.ts"

/**
 * Addresses to which no URL of an upstream may point: this host, its local network, the metadata service of its cloud,
 * and addresses that belong to no host.
 */
const policy = makeAddressPolicy({
  denied: [
    "0.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/4",
    "255.255.255.255/32",
    "::/127",
    "fe80::/10",
    "ff00::/8",
    ...metadataServices
  ],
  allowed: []
})

// The URL is signed and shown exactly as it was written. So it must contain nothing that a parser would change or a
// terminal would interpret.
const written = /^[\x21-\x7e]{1,2000}$/

/**
 * Returns a URL that an upstream named, if requests may be sent to the URL. It must have the scheme of the directory
 * and no user part. Its host must be the directory's host, or a host that is neither this host nor in its local
 * network. Returns `undefined` for every other URL.
 */
export const upstreamUrl = (text: unknown, directory: URL): URL | undefined => {
  if (typeof text !== "string" || !written.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  if (url.protocol !== directory.protocol || url.username !== "" || url.password !== "") return undefined
  if (url.hostname === directory.hostname) return url
  const address = parseAddress(url.hostname.replace(/^\[|\]$/g, ""))
  if (Option.isSome(address)) return policy.check(address.value) === undefined ? url : undefined
  return /(?:^|\.)localhost\.?$/i.test(url.hostname) ? undefined : url
}

/**
 * Returns what is wrong with a URL that {@link upstreamUrl} does not accept. `what` says which URL it is, such as `a
 * newOrder`.
 */
export const urlFault = (text: unknown, what: string): string => {
  if (text === undefined || text === null) return what.replace(/^an? /, "no ")
  return typeof text === "string" && URL.canParse(text)
    ? `${what} that is not a trusted URL: ${plain(new URL(text).origin)}`
    : `${what} that is no URL`
}

import * as Option from "effect/Option"
import { networkInterfaces } from "node:os"
import { parseAddress } from "../engine/net/Address.ts"
import { parseBindAddress } from "../engine/net/SocketAddress.ts"
import type { Config } from "../settings/AppConfig.ts"

const everything: ReadonlyArray<string> = ["0.0.0.0", "::"]

/**
 * Returns the addresses on which a configuration listens. A wildcard address stands for all current addresses of this
 * host. Host names are not resolved.
 */
export const ownAddresses = (
  { admin, metrics, publish, server }: Pick<Config, "admin" | "metrics" | "publish" | "server">,
  interfaces: ReturnType<typeof networkInterfaces> = networkInterfaces()
): ReadonlyArray<string> => {
  const bound = [server, ...[admin, metrics, publish].filter(({ enabled }) => enabled)].map(({ bind_address }) =>
    bind_address
  )
  const hosts = bound.flatMap((address) => {
    const host = parseBindAddress(address)?.host
    return host === undefined ? [] : [host]
  })
  const held = hosts.some((host) => everything.includes(host))
    ? Object.values(interfaces).flatMap((addresses) => (addresses ?? []).map(({ address }) => address))
    : []
  return [...hosts.filter((host) => !everything.includes(host)), ...held]
    .map((address) => address.replace(/%.*$/, ""))
    .filter((address) => Option.isSome(parseAddress(address)))
}

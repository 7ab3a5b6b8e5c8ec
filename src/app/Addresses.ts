import { Effect } from "effect"
import type { Roles } from "../domain/Role.ts"
import type { Comparable } from "../kernel/net/Address.ts"
import { hostAddress } from "../kernel/net/HostAddress.ts"
import { parseBindAddress } from "../kernel/net/SocketAddress.ts"
import { emit } from "../kernel/telemetry/EventLog.ts"
import type { Config } from "../settings/AppConfig.ts"
import { CommandFailed } from "./CommandFailed.ts"

/** Whether a socket at one address keeps another from the same port. `::` takes the IPv4 addresses too. */
const overlap = (one: Comparable, other: Comparable): boolean => {
  const takes = (wide: Comparable, narrow: Comparable) =>
    wide.value === 0n && (wide.width === 128 || narrow.width === wide.width)
  return one.text === other.text || takes(one, other) || takes(other, one)
}

const resolved = Effect.fnUntraced(function*(key: string, text: string) {
  const { host, port } = parseBindAddress(text) ?? { host: "", port: 0 } // checked with the configuration
  return { key, text, port, address: port === 0 ? undefined : yield* hostAddress(host) }
})

/**
 * Refuses a configuration whose listeners want the same address, however it is written: nothing but another configuration
 * would help, so it is not left to the binding, which a service manager would try for ever.
 */
export const checkAddresses = (
  { metrics, server }: Pick<Config, "metrics" | "server">,
  roles: Roles
): Effect.Effect<void, CommandFailed> =>
  Effect.gen(function*() {
    if (!metrics.enabled || !roles.has("acme")) return
    const own = yield* resolved("metrics.bind_address", metrics.bind_address)
    const other = yield* resolved("server.bind_address", server.bind_address)
    if (own.port !== other.port || own.address === undefined || other.address === undefined) return
    if (!overlap(own.address, other.address)) return
    const error = `${own.text} is an address of another listener too, ${other.key} = ${other.text}`
    yield* emit("metrics_config_invalid", { key: own.key, error })
    return yield* new CommandFailed({ code: 3, message: `${own.key}: ${error}.` })
  })

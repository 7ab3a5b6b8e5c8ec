import * as Effect from "effect/Effect"
import type { Roles } from "../domain/Role.ts"
import { emit } from "../domain/words/Log.ts"
import type { Comparable } from "../engine/net/Address.ts"
import { hostAddress } from "../engine/net/HostAddress.ts"
import { parseBindAddress } from "../engine/net/SocketAddress.ts"
import type { Config } from "../settings/AppConfig.ts"
import { CommandFailed } from "./CommandFailed.ts"

/** Returns whether sockets at these two addresses cannot have the same port. `::` includes all IPv4 addresses. */
const overlap = (one: Comparable, other: Comparable): boolean => {
  const takes = (wide: Comparable, narrow: Comparable) =>
    wide.value === 0n && (wide.width === 128 || narrow.width === wide.width)
  return one.text === other.text || takes(one, other) || takes(other, one)
}

const resolved = Effect.fnUntraced(function*(key: string, text: string) {
  const { host, port } = parseBindAddress(text) ?? { host: "", port: 0 } // the configuration has already been checked
  return { key, text, port, address: port === 0 ? undefined : yield* hostAddress(host) }
})

type Bound = Pick<Config, "admin" | "metrics" | "publish" | "server">

/** Returns the listeners of a process, each with the record to log if another listener already has its address. */
const listenersOf = ({ admin, metrics, publish, server }: Bound, roles: Roles) => [
  ...roles.has("acme")
    ? [{ key: "server.bind_address", text: server.bind_address, event: "metrics_config_invalid" } as const]
    : [],
  ...roles.has("admin") && admin.enabled
    ? [{ key: "admin.bind_address", text: admin.bind_address, event: "admin_config_invalid" } as const]
    : [],
  ...roles.has("acme") && publish.enabled
    ? [{ key: "publish.bind_address", text: publish.bind_address, event: "publish_config_invalid" } as const]
    : [],
  ...metrics.enabled
    ? [{ key: "metrics.bind_address", text: metrics.bind_address, event: "metrics_config_invalid" } as const]
    : []
]

/**
 * Refuses a configuration in which two listeners have the same address, in any notation. Only a different configuration
 * would help, so this is checked before any address is bound. Otherwise a service manager would retry the failed
 * binding forever.
 */
export const checkAddresses = (
  config: Bound,
  roles: Roles
): Effect.Effect<void, CommandFailed> =>
  Effect.gen(function*() {
    const earlier: Array<Effect.Success<ReturnType<typeof resolved>>> = []
    for (const { event, key, text } of listenersOf(config, roles)) {
      const own = yield* resolved(key, text)
      const { address, port } = own
      const other = address &&
        earlier.find((one) => one.port === port && one.address !== undefined && overlap(address, one.address))
      if (other !== undefined) {
        const error = `${text} is an address of another listener too, ${other.key} = ${other.text}`
        yield* emit(event, { key, error })
        return yield* new CommandFailed({ code: 3, message: `${key}: ${error}.` })
      }
      earlier.push(own)
    }
  })

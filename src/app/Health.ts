import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { hostname } from "node:os"
import type { Role } from "../domain/Role.ts"
import { parseAddress } from "../kernel/net/Address.ts"
import { HttpGet } from "../kernel/net/HttpGet.ts"
import { parseBindAddress } from "../kernel/net/SocketAddress.ts"
import * as workers from "../kernel/queue/Workers.ts"
import { currentSeconds } from "../kernel/Time.ts"
import type { Config } from "../settings/AppConfig.ts"
import { CommandFailed } from "./CommandFailed.ts"
import type { Host } from "./Host.ts"
import { database } from "./OpenDatabase.ts"

const freshSeconds = 30
const maxBytes = 1024

const ipv4 = "127.0.0.1"

/** Where to ask a listener that is bound to a host. What is bound to every address of IPv6 has those of IPv4 too. */
const loopbacks = new Map([["0.0.0.0", [ipv4]], ["::", ["::1", ipv4]], ["localhost", [ipv4]]])

/** GET /health at an address, TLS unverified. */
const answersAt = (
  dialled: string,
  { port, tls, version }: Pick<Config["server"], "tls"> & { readonly port: number; readonly version: string }
): Effect.Effect<boolean> =>
  Effect.gen(function*() {
    const address = parseAddress(dialled)
    if (Option.isNone(address)) return false
    const { get } = yield* HttpGet
    const answer = yield* get({
      address: address.value,
      port,
      connectMillis: undefined,
      secure: tls.enabled,
      host: "localhost",
      path: "/health",
      maxBytes
    })
    return answer.status === 200 && answer.body.toString().includes(`"healthy":true`)
  }).pipe(Effect.provide(HttpGet.layer(version)), Effect.orElseSucceed(() => false))

/** GET /health where a listener is bound, over loopback for a wildcard. A host may have no loopback of IPv6, such as a container. */
const answers = ({ bind_address, tls }: Pick<Config["server"], "bind_address" | "tls">, version: string) => {
  const { host, port } = parseBindAddress(bind_address) ?? { host: "", port: 0 }
  const dialled = loopbacks.get(host) ?? [host]
  return Effect.map(Effect.findFirst(dialled, (one) => answersAt(one, { port, tls, version })), Option.isSome)
}

/** A process of this host with the worker role was seen within half a minute. */
const wasSeen = (config: Config): Effect.Effect<boolean, CommandFailed, Host> =>
  Effect.flatMap(currentSeconds, (now) => workers.wasSeen(hostname(), "worker", now - freshSeconds, now + freshSeconds))
    .pipe(
      Effect.mapError(({ message }) => new CommandFailed({ code: 1, message })),
      (seen) => Effect.provide(seen, Layer.fresh(database(config)))
    )

/** `health`: prints nothing, and fails with exit 1 if the role does not answer in time. */
export const health = (
  config: Config,
  version: string,
  role: Role,
  timeoutMillis: number
): Effect.Effect<void, CommandFailed, Host> =>
  (role === "worker" ? wasSeen(config) : answers(role === "admin" ? config.admin : config.server, version)).pipe(
    Effect.timeoutOption(timeoutMillis),
    Effect.filterOrFail(
      Option.exists((healthy) => healthy),
      () => new CommandFailed({ code: 1, message: "" })
    )
  )

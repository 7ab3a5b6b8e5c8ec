import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { hostname } from "node:os"
import type { Role } from "../domain/Role.ts"
import { parseAddress } from "../engine/net/Address.ts"
import { HttpGet } from "../engine/net/HttpGet.ts"
import { parseBindAddress } from "../engine/net/SocketAddress.ts"
import { clocks } from "../engine/queue/Clocks.ts"
import * as workers from "../engine/queue/Workers.ts"
import type { Config } from "../settings/AppConfig.ts"
import { CommandFailed } from "./CommandFailed.ts"
import type { Host } from "./Host.ts"
import { database } from "./OpenDatabase.ts"
import { readyPath } from "./Readiness.ts"

const freshSeconds = 30
const maxBytes = 1024

const ipv4 = "127.0.0.1"

/**
 * The addresses to dial if a listener is bound to a wildcard or to `localhost`. A listener on every IPv6 address also
 * listens on the IPv4 addresses.
 */
const loopbacks = new Map([["0.0.0.0", [ipv4]], ["::", ["::1", ipv4]], ["localhost", [ipv4]]])

/** A health request: a GET of a path at a listener. */
interface Asked {
  readonly bindAddress: string
  readonly isSecure: boolean
  readonly path: string
}

type Answered = Option.Option<{ readonly status: number; readonly body: string }>

/**
 * Returns the status and the body of the answer from an address. TLS is not verified. Returns nothing if there is no
 * answer.
 */
const askAt = (dialled: string, port: number, { isSecure, path }: Asked, version: string): Effect.Effect<Answered> =>
  Effect.gen(function*() {
    const address = parseAddress(dialled)
    if (Option.isNone(address)) return Option.none()
    const { get } = yield* HttpGet
    const answer = yield* get({
      address: address.value,
      port,
      connectMillis: undefined,
      secure: isSecure,
      host: "localhost",
      path,
      maxBytes
    })
    return Option.some({ status: answer.status, body: answer.body.toString() })
  }).pipe(Effect.provide(HttpGet.layer(version)), Effect.orElseSucceed(Option.none))

/**
 * Sends the request to a listener at its bound address, or over loopback if that address is a wildcard. Some hosts,
 * such as containers, have no IPv6 loopback.
 */
const ask = (asked: Asked, version: string): Effect.Effect<Answered> => {
  const { host, port } = parseBindAddress(asked.bindAddress) ?? { host: "", port: 0 }
  return Effect.reduce(
    loopbacks.get(host) ?? [host],
    (): Answered => Option.none(),
    (before, dialled) => Option.isSome(before) ? Effect.succeed(before) : askAt(dialled, port, asked, version)
  )
}

/** Returns whether a listener for clients or for operators answers that the service is healthy. */
export const isHealthy = ({ bind_address, tls }: Pick<Config["server"], "bind_address" | "tls">, version: string) =>
  Effect.map(
    ask({ bindAddress: bind_address, isSecure: tls.enabled, path: "/health" }, version),
    Option.exists(({ body, status }) => status === 200 && body.includes(`"healthy":true`))
  )

const readRoles = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ roles: Schema.Array(Schema.String) }))
)

/** Returns whether the socket for metrics answers like a socket of this service. */
export const isOwnMetrics = ({ bind_address }: Pick<Config["metrics"], "bind_address">, version: string) =>
  Effect.map(
    ask({ bindAddress: bind_address, isSecure: false, path: readyPath }, version),
    Option.exists(({ body }) => Option.isSome(readRoles(body)))
  )

/**
 * Returns whether the worker that has this host's socket for metrics is ready. Returns nothing if no worker has this
 * socket.
 */
const readiness = ({ metrics: { bind_address, enabled } }: Config, version: string) =>
  enabled
    ? Effect.map(
      ask({ bindAddress: bind_address, isSecure: false, path: readyPath }, version),
      Option.flatMap(({ body, status }) =>
        Option.as(Option.filter(readRoles(body), ({ roles }) => roles.includes("worker")), status === 200)
      )
    )
    : Effect.succeedNone

/** Returns whether a process with the worker role was seen on this host within the last half minute. */
const wasSeen = (config: Config): Effect.Effect<boolean, CommandFailed, Host> =>
  Effect.flatMap(
    clocks,
    ({ later }) => workers.wasSeen(hostname(), "worker", later - freshSeconds, later + freshSeconds)
  )
    .pipe(
      Effect.mapError(({ message }) => new CommandFailed({ code: 1, message })),
      (seen) => Effect.provide(seen, Layer.fresh(database(config)))
    )

/** Runs `health`. Prints nothing. Fails with exit code 1 if the role does not answer in time. */
export const health = (
  config: Config,
  version: string,
  role: Role,
  timeoutMillis: number
): Effect.Effect<void, CommandFailed, Host> =>
  (role === "worker"
    ? Effect.flatMap(
      readiness(config, version),
      Option.match({ onNone: () => wasSeen(config), onSome: Effect.succeed })
    )
    : isHealthy(role === "admin" ? config.admin : config.server, version)).pipe(
      Effect.timeoutOption(timeoutMillis),
      Effect.filterOrFail(
        Option.exists((healthy) => healthy),
        () => new CommandFailed({ code: 1, message: "" })
      )
    )

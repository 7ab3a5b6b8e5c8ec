import * as Array from "effect/Array"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Http from "node:http"
import type * as Net from "node:net"
import { oneLine } from "../HiddenText.ts"
import { exhausted, isExhaustion } from "../host/Exhausted.ts"
import { candidates, comparable } from "./Address.ts"
import type { Dialer } from "./Connect.ts"
import { connect, ConnectFailed, ignore } from "./Connect.ts"
import type { ForwardProxy, ProxyOf } from "./Proxy.ts"
import { Resolver } from "./Resolver.ts"

/** No connection to a host could be made. `detail` contains no secret. */
export class Unreached extends Data.TaggedError("Unreached")<{
  readonly detail: string
  /** The system's error code, if there is one. */
  readonly code?: string | undefined
}> {}

/**
 * Returns the addresses of a host. For a literal this is the literal itself, and for a name these are its DNS records.
 */
const addressesOf = Effect.fnUntraced(function*(host: string) {
  const literal = comparable(host)
  if (literal !== undefined) return [literal.text]
  const resolver = yield* Resolver
  const found = yield* Effect.mapError(
    resolver.addresses(host),
    ({ code }) =>
      new Unreached({ detail: isExhaustion(code) ? exhausted(code) : `its name is not known: ${code}`, code })
  )
  return candidates(found)
})

const connectMillis = 2000

/**
 * Connects to a host, which is given as a name or a literal (IPv6 without brackets). The addresses are tried one after
 * another.
 */
export const reach = (
  host: string,
  port: number
): Effect.Effect<Net.Socket, Unreached, Resolver | Scope.Scope> =>
  Effect.gen(function*() {
    const addresses = yield* addressesOf(host)
    if (!Array.isReadonlyArrayNonEmpty(addresses)) return yield* new Unreached({ detail: "its name has no address" })
    return yield* Effect.firstSuccessOf(addresses.map((address) => connect({ address, port, connectMillis }))).pipe(
      Effect.mapError(({ code, detail }) =>
        new Unreached({ detail: isExhaustion(code) ? exhausted(code) : detail, code })
      )
    )
  })

const maxHeadBytes = 16_384

/** Asks a proxy for a tunnel to `authority` (RFC 9110 section 9.3.6). The socket is a connection to this proxy. */
const tunnel = (socket: Net.Socket, { authorization }: ForwardProxy, authority: string) =>
  Effect.callback<Net.Socket, Unreached>((resume) => {
    const request = Http.request({
      createConnection: () => socket,
      method: "CONNECT",
      path: authority,
      setHost: false,
      maxHeaderSize: maxHeadBytes,
      insecureHTTPParser: false,
      headers: {
        Host: authority,
        ...(authorization === undefined ? {} : { "Proxy-Authorization": Redacted.value(authorization) })
      }
    })
    const failed = (detail: string) => {
      resume(new Unreached({ detail: `the proxy: ${detail}` }))
      request.destroy()
      socket.destroy()
    }
    request.on("error", ({ message }) => failed(message))
    request.once("close", () => failed("closed without an answer"))
    const refused = ({ statusCode, statusMessage = "" }: Http.IncomingMessage) =>
      failed(`answers ${statusCode} ${oneLine(statusMessage)}`.trimEnd())
    request.once("response", refused)
    request.once("connect", (answer, stream: Net.Socket, early) => {
      const { statusCode } = answer
      if (statusCode === undefined || statusCode < 200 || statusCode > 299) return refused(answer)
      // Nothing has been sent to the host yet, so these octets cannot be an answer of the host.
      if (early.length > 0) return failed("answers with more than its answer")
      request.removeAllListeners()
      resume(Effect.succeed(stream.on("error", ignore)))
    })
    // A tunnel ends with its connection, so this header is not needed. Some proxies obey it and close the tunnel.
    request.removeHeader("Connection")
    request.end()
    return Effect.sync(() => {
      request.destroy()
      socket.destroy()
    })
  })

const bracketed = (host: string): string => host.includes(":") ? `[${host}]` : host

/** Connects to a host through a proxy. The proxy looks up the name. */
export const reachThrough = (
  proxy: ForwardProxy,
  host: string,
  port: number
): Effect.Effect<Net.Socket, Unreached, Resolver | Scope.Scope> =>
  Effect.flatMap(
    Effect.mapError(reach(proxy.host, proxy.port), ({ code, detail }) =>
      new Unreached({ detail: `the proxy: ${detail}`, code })),
    (socket) =>
      tunnel(socket, proxy, `${bracketed(host)}:${port}`)
  )

/**
 * Makes connections to an address that the caller has checked. A connection goes through a tunnel if a proxy is
 * configured for the scheme and neither the name nor the address is exempt.
 */
export const throughProxies = (proxyOf: ProxyOf): Effect.Effect<Dialer, never, Resolver> =>
  Effect.map(Resolver, (resolver) => (request, scheme, name) => {
    const { address, connectMillis, port } = request
    const proxy = proxyOf(scheme, name) === undefined ? undefined : proxyOf(scheme, address)
    if (proxy === undefined) return connect(request)
    const tunnelled = reachThrough(proxy, address, port).pipe(
      Effect.mapError(({ code, detail }) => new ConnectFailed({ detail, code })),
      Effect.provideService(Resolver, resolver)
    )
    return connectMillis === undefined ? tunnelled : Effect.timeoutOrElse(tunnelled, {
      duration: connectMillis,
      orElse: () => Effect.fail(new ConnectFailed({ detail: `no connection within ${connectMillis} ms` }))
    })
  })

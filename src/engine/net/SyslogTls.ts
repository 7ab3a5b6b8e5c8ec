import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Tls from "node:tls"
import { tlsFault } from "../TlsFault.ts"
import { sni } from "./Connect.ts"
import { reach } from "./Reach.ts"
import { Resolver } from "./Resolver.ts"
import type { HostPort } from "./SocketAddress.ts"

/** A receiver of syslog messages, and what the connection to it trusts and shows. */
export interface SyslogPeer extends HostPort {
  /** The CAs that are trusted in addition to the public CAs, as PEM. */
  readonly roots: ReadonlyArray<string>
  /** The configuration key that names {@link roots}. It is shown if no trusted CA has signed the certificate. */
  readonly rootsKey: string
  /** The certificate with its chain, and its key, that the service shows, as PEM. */
  readonly pair: { readonly cert: string; readonly key: string } | undefined
}

/** The messages were not taken, or it is not known whether they were. `detail` contains no message and no key. */
export class SyslogFailed extends Data.TaggedError("SyslogFailed")<{ readonly detail: string }> {}

const failed = (detail: string) => new SyslogFailed({ detail })

type Secured = (peer: SyslogPeer) => Tls.SecureContext

/** Makes the settings of connections. The last ones are kept, because reading all roots takes tens of milliseconds. */
const makeSecured = (): Secured => {
  let last: { readonly key: string; readonly context: Tls.SecureContext } | undefined
  return ({ pair, roots }) => {
    const key = [...roots, pair?.cert, pair?.key].join("\n")
    if (last?.key === key) return last.context
    const context = Tls.createSecureContext({
      minVersion: "TLSv1.2",
      ...roots.length === 0 ? {} : { ca: [...Tls.rootCertificates, ...roots] },
      ...pair === undefined ? {} : pair
    })
    last = { key, context }
    return context
  }
}

/**
 * How long a connection must stay open after everything was sent, before it is ended. A receiver that refuses the
 * certificate of the service, or that is about to end, closes the connection within this time.
 */
const heldMillis = 500

interface Connection {
  readonly stream: Tls.TLSSocket
  /** Succeeds when the receiver ends the connection, and fails when the connection fails. */
  readonly over: Effect.Effect<void, SyslogFailed>
}

const connected = Effect.fnUntraced(function*(peer: SyslogPeer, secured: Secured) {
  const { host, port, roots, rootsKey } = peer
  const secureContext = yield* Effect.try({
    try: () => secured(peer),
    catch: (error) => failed(`the certificate, its key or the CAs cannot be used: ${String(error)}`)
  })
  const socket = yield* Effect.mapError(reach(host, port), ({ detail }) => failed(detail))
  const over = Deferred.makeUnsafe<void, SyslogFailed>()
  const fail = (detail: string) => Deferred.doneUnsafe(over, Effect.fail(failed(detail)))
  const stream = yield* Effect.acquireRelease(
    Effect.sync(() => Tls.connect({ socket, host, ...sni(host), secureContext })),
    (stream) => Effect.sync(() => stream.destroy())
  )
  stream.once("error", ({ message }) => fail(tlsFault(message, { key: rootsKey, isSet: roots.length > 0 })))
  stream.once("data", () => fail("it answers, and a receiver of syslog never does"))
  stream.once("end", () => Deferred.doneUnsafe(over, Effect.void))
  stream.once("close", () => fail("the connection broke"))
  const connection: Connection = { stream, over: Deferred.await(over) }
  yield* unlessOver(
    connection,
    Effect.callback<void>((resume) => {
      stream.once("secureConnect", () => resume(Effect.void))
    })
  )
  return connection
})

/** Runs a step of a delivery. Fails if the connection is over before the step is done. */
const unlessOver = <A>({ over }: Connection, step: Effect.Effect<A>): Effect.Effect<A, SyslogFailed> =>
  Effect.raceFirst(
    step,
    Effect.andThen(over, Effect.fail(failed("it ended the connection before everything was sent")))
  )

/**
 * Connects, sends the octets, and waits whether the connection stays open. Then ends the connection, and waits until
 * the receiver has ended it too.
 */
const exchanged = Effect.fnUntraced(function*(peer: SyslogPeer, octets: string, secured: Secured) {
  const connection = yield* connected(peer, secured)
  const { over, stream } = connection
  yield* unlessOver(
    connection,
    Effect.callback<void>((resume) => {
      stream.write(octets, (error) => {
        if (error === undefined || error === null) resume(Effect.void)
      })
    })
  )
  yield* unlessOver(connection, Effect.sleep(heldMillis))
  yield* Effect.sync(() => stream.end())
  yield* over
})

/**
 * Sends messages to a receiver of syslog over TLS (RFC 5425). Each delivery has a connection of its own. There is no
 * time limit.
 *
 * Syslog has no acknowledgement. But a receiver that has got the end of the stream must end the connection too
 * (RFC 5425 section 4.4), and can do this without an error only after it has read everything before. So a delivery
 * succeeds only if the connection stayed open after everything was sent, and the receiver then ended it in order.
 */
export class SyslogTls extends Context.Service<SyslogTls, {
  /** Delivers frames, which are messages with octet counting (RFC 5425 section 4.3). */
  readonly deliver: (peer: SyslogPeer, frames: string) => Effect.Effect<void, SyslogFailed>
  /** Connects as for a delivery, and sends nothing. */
  readonly reach: (peer: SyslogPeer) => Effect.Effect<void, SyslogFailed>
}>()("acme/engine/net/SyslogTls") {
  static readonly layer: Layer.Layer<SyslogTls, never, Resolver> = Layer.effect(
    this,
    Effect.map(Resolver, (resolver) => {
      const secured = makeSecured()
      const deliver = (peer: SyslogPeer, frames: string) =>
        Effect.scoped(exchanged(peer, frames, secured)).pipe(Effect.provideService(Resolver, resolver))
      return { deliver, reach: (peer) => deliver(peer, "") }
    })
  )
}

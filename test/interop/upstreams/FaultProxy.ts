import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http"
import { createServer, request as requestOf } from "node:https"
import type { AddressInfo } from "node:net"
import { buffer } from "node:stream/consumers"

/* A reverse proxy in front of an upstream CA, which fails at requests of a relay according to rules. */

/** The requests of a relay to its upstream. */
export type Asked =
  | "directory"
  | "newNonce"
  | "newAccount"
  | "account"
  | "orders"
  | "newOrder"
  | "order"
  | "authorization"
  | "challenge"
  | "finalize"
  | "certificate"
  | "revokeCert"

/** What happens to a request. */
export interface Fault {
  /** The name of the fault in the table. */
  readonly name: string
  /** An answer instead of that of the upstream, which does not get the request. */
  readonly answer?: {
    readonly status: number
    readonly type: string
    readonly body: string
    readonly retryAfter?: string
  }
  /** Whether the upstream gets the request, but the answer or its second half is lost. */
  readonly damage?: "lost" | "cut"
  /**
   * How the connection behaves if the upstream does not get the request: it ends at once, or hangs until the relay
   * gives up.
   */
  readonly silence?: "closed" | "hangs"
}

/** A fault that affects the first `times` requests of a kind. */
export interface Rule {
  readonly at: Asked
  readonly fault: Fault
  readonly times: number
}

/** One request of the relay. */
export interface Seen {
  readonly at: Asked | undefined
  readonly fault: Fault | undefined
  readonly millis: number
  /** The status of the upstream's answer. */
  readonly status?: number
}

/** A running proxy. */
export interface FaultProxy {
  /**
   * The address `127.0.0.1:port`. The upstream must build its URLs from the Host of a request, or from this address.
   */
  readonly host: string
  /** Begins again with these rules. From then on, `seen` has only later requests. */
  readonly begin: (rules: ReadonlyArray<Rule>) => void
  readonly seen: () => ReadonlyArray<Seen>
  readonly stop: () => Promise<void>
}

export interface ProxyOptions {
  readonly port?: number
  readonly key: Buffer
  readonly cert: Buffer
  readonly upstream: {
    readonly host: string
    readonly port: number
    readonly name?: string
    readonly directory: string
  }
  /** Whether only the answer to newNonce has a nonce, so that each request needs a newNonce. */
  readonly withholdsNonces?: boolean
}

const pathOf = (url: unknown): string | undefined =>
  typeof url === "string" && URL.canParse(url) ? new URL(url).pathname : undefined

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns the leaf of a chain, as its DER in base64url. */
const leafOf = (chain: string): string | undefined =>
  /-----BEGIN CERTIFICATE-----([^-]*)-----END/.exec(chain)?.[1]?.replaceAll(/\s/g, "")
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")

/** Returns the certificate that a signed request asks to revoke. */
const toRevoke = (body: Buffer): unknown => {
  const signed = parsed(body.toString()) as { readonly payload?: string } | undefined
  const payload = parsed(Buffer.from(signed?.payload ?? "", "base64url").toString())
  return (payload as { readonly certificate?: unknown } | undefined)?.certificate
}

/**
 * Learns the meaning of the upstream's paths from its answers. The relay may still ask about an order of an earlier
 * play. Such requests do not belong to the present play.
 */
const makeAtlas = (directory: string) => {
  const known = new Map<string, Asked>([[directory, "directory"]])
  const fresh = new Set<string>()
  // A play with a revocation begins again before the revocation, and so the earlier leaves belong to the play.
  let [before, leaves] = [new Set<unknown>(), new Set<unknown>()]
  const learn = (url: unknown, at: Asked) => {
    const path = pathOf(url)
    if (path === undefined || known.has(path)) return
    known.set(path, at)
    fresh.add(path)
  }
  return {
    of: (path: string): Asked | undefined => known.get(path),
    begin: () => {
      fresh.clear()
      ;[before, leaves] = [leaves, new Set()]
    },
    isOfPlay: (at: Asked | undefined, path: string, body: Buffer): boolean =>
      at === "order" || at === "certificate"
        ? fresh.has(path)
        : at !== "revokeCert" || [before, leaves].some((one) => one.has(toRevoke(body))),
    learn: (at: Asked | undefined, location: unknown, text: string) => {
      if (at === "newAccount") learn(location, "account")
      if (at === "newOrder") learn(location, "order")
      if (at === "certificate") leaves.add(leafOf(text))
      const body = parsed(text)
      if (typeof body !== "object" || body === null) return
      const members = body as { readonly [member: string]: unknown }
      if (at === "directory") {
        for (const name of ["newNonce", "newAccount", "newOrder", "revokeCert"] as const) learn(members[name], name)
      }
      if (at === "newAccount" || at === "account") learn(members["orders"], "orders")
      for (const url of Array.isArray(members["authorizations"]) ? members["authorizations"] : []) {
        learn(url, "authorization")
      }
      learn(members["finalize"], "finalize")
      learn(members["certificate"], "certificate")
      for (const one of Array.isArray(members["challenges"]) ? members["challenges"] : []) {
        learn((one as { readonly url?: unknown }).url, "challenge")
      }
    }
  }
}

/** Starts a proxy on loopback. */
export const startFaultProxy = async (options: ProxyOptions): Promise<FaultProxy> => {
  const { cert, key, port = 0, upstream, withholdsNonces = false } = options
  const atlas = makeAtlas(upstream.directory)
  let rules: Array<{ readonly rule: Rule; left: number }> = []
  let seen: Array<Seen> = []

  const ask = (incoming: IncomingMessage, body: Buffer) =>
    new Promise<{ readonly status: number; readonly headers: OutgoingHttpHeaders; readonly body: Buffer }>(
      (resolve, reject) => {
        const outgoing = requestOf({
          host: upstream.host,
          port: upstream.port,
          servername: upstream.name ?? "localhost",
          method: incoming.method,
          path: incoming.url,
          headers: { ...incoming.headers, connection: "close" },
          rejectUnauthorized: false,
          agent: false
        }, (answer) => {
          buffer(answer).then(
            (body) => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body }),
            reject
          )
        })
        outgoing.once("error", reject).end(body)
      }
    )

  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(incoming)
    const path = new URL(incoming.url ?? "/", "https://x").pathname
    const at = atlas.of(path)
    const isOfPlay = atlas.isOfPlay(at, path, body)
    const due = isOfPlay ? rules.find(({ left, rule }) => rule.at === at && left > 0) : undefined
    if (due !== undefined) due.left--
    const fault = due?.rule.fault
    const millis = performance.now()
    if (fault?.silence !== undefined || fault?.answer !== undefined) {
      seen.push({ at, fault, millis })
      if (fault.silence === "closed") return void incoming.socket.destroy()
      if (fault.answer === undefined) return
      const { answer } = fault
      response.writeHead(answer.status, {
        "Content-Type": answer.type,
        "Content-Length": Buffer.byteLength(answer.body),
        ...answer.retryAfter === undefined ? {} : { "Retry-After": answer.retryAfter }
      }).end(answer.body)
      return
    }
    const answer = await ask(incoming, body)
    if (isOfPlay) seen.push({ at, fault, millis, status: answer.status })
    atlas.learn(at, answer.headers["location"], answer.body.toString())
    if (fault?.damage === "lost") return void incoming.socket.destroy()
    const { "content-length": _, "replay-nonce": nonce, "transfer-encoding": __, ...headers } = answer.headers
    response.writeHead(answer.status, {
      ...headers,
      ...nonce === undefined || (withholdsNonces && at !== "newNonce") ? {} : { "Replay-Nonce": nonce },
      "Content-Length": answer.body.length
    })
    if (fault?.damage !== "cut" || incoming.method === "HEAD") return void response.end(answer.body)
    response.write(answer.body.subarray(0, answer.body.length / 2), () => incoming.socket.destroySoon())
  }

  const server = createServer({ key, cert }, (incoming, response) => {
    handle(incoming, response).catch(() => incoming.socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    begin: (next) => {
      rules = next.map((rule) => ({ rule, left: rule.times }))
      atlas.begin()
      seen = []
    },
    seen: () => seen,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}

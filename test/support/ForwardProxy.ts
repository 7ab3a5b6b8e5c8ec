import type { IncomingMessage } from "node:http"
import { createServer, request as httpRequest } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { connect } from "node:net"

/** A request as the proxy saw it. */
export interface Proxied {
  readonly method: string
  /** `host:port` for a CONNECT, and otherwise the absolute URL. */
  readonly target: string
  readonly authorization: string | undefined
}

/** A forward proxy on loopback that resolves every name to 127.0.0.1. */
export interface ForwardProxy {
  readonly port: number
  readonly url: string
  readonly seen: ReadonlyArray<Proxied>
  readonly stop: () => Promise<void>
}

/** Starts a proxy. With `refuse`, it answers every request with that status. */
export const startForwardProxy = async (
  options: { readonly refuse?: number; readonly early?: string } = {}
): Promise<ForwardProxy> => {
  const seen: Array<Proxied> = []
  const sockets = new Set<Socket>()
  const note = ({ headers, method = "", url = "" }: IncomingMessage) =>
    seen.push({ method, target: url, authorization: headers["proxy-authorization"] })
  const server = createServer((incoming, outgoing) => {
    note(incoming)
    if (options.refuse !== undefined) return outgoing.writeHead(options.refuse).end()
    const { pathname, port, search } = new URL(incoming.url ?? "")
    const { "proxy-authorization": _, ...headers } = incoming.headers
    const onward = httpRequest({ host: "127.0.0.1", port, path: pathname + search, method: incoming.method, headers })
    onward.on("response", (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(outgoing)
    })
    onward.on("error", () => outgoing.writeHead(502).end())
    incoming.pipe(onward)
  })
  server.on("connection", (socket) => {
    sockets.add(socket)
    socket.on("error", () => {}).once("close", () => sockets.delete(socket))
  })
  server.on("connect", (incoming, socket: Socket) => {
    note(incoming)
    if (options.refuse !== undefined) return socket.end(`HTTP/1.1 ${options.refuse} No\r\nContent-Length: 0\r\n\r\n`)
    // Strict proxies close the connection here, so a tunnel would end with this answer.
    if (incoming.headers.connection === "close") return socket.end("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    const port = Number(incoming.url?.slice(incoming.url.lastIndexOf(":") + 1))
    const onward = connect(port, "127.0.0.1", () => {
      socket.write(`HTTP/1.1 200 OK\r\n\r\n${options.early ?? ""}`)
      socket.pipe(onward).pipe(socket)
    })
    sockets.add(onward)
    onward.on("error", () => socket.destroy()).once("close", () => sockets.delete(onward))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    seen,
    stop: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      })
  }
}

import type { Socket } from "node:net"
import { connect as connectPlain, isIP } from "node:net"
import { connect as connectSecure } from "node:tls"

/* The part of HTTP/1.1 that a load generator needs: one request at a time on a connection that stays open. */

/** The address to which requests are sent. */
export interface Target {
  readonly host: string
  readonly port: number
  readonly secure: boolean
  /** The CA certificates, in PEM, for TLS. If they are undefined, the server's certificate is not checked. */
  readonly ca?: string | undefined
}

/** Returns the target to which requests for a URL are sent. */
export const targetOf = (url: string): Target => {
  const { hostname, port, protocol } = new URL(url)
  const secure = protocol === "https:"
  return { host: hostname, port: Number(port) || (secure ? 443 : 80), secure }
}

/** An answer. The header section stays text, because most header fields are never read. */
export interface Answer {
  readonly status: number
  readonly head: string
  readonly body: string
}

const headEnd = Buffer.from("\r\n\r\n")

/** Returns a header field of an answer. */
export const field = (head: string, name: string): string | undefined => {
  const start = head.toLowerCase().indexOf(`\r\n${name}:`)
  if (start < 0) return undefined
  const from = start + name.length + 3
  const end = head.indexOf("\r\n", from)
  return head.slice(from, end < 0 ? undefined : end).trim()
}

/** Returns the content of a chunked body, or undefined if the body is incomplete. */
const unchunk = (bytes: Buffer): Buffer | undefined => {
  const parts: Array<Buffer> = []
  for (let at = 0;;) {
    const line = bytes.indexOf("\r\n", at)
    if (line < 0) return undefined
    const size = Number.parseInt(bytes.toString("latin1", at, line), 16)
    const end = line + 2 + size
    if (bytes.length < end + 2) return undefined
    if (size === 0) return Buffer.concat(parts)
    parts.push(bytes.subarray(line + 2, end))
    at = end + 2
  }
}

const bodyOf = (head: string, status: number, bytes: Buffer, isHead: boolean): Buffer | undefined => {
  if (isHead || status === 204 || status === 304) return Buffer.alloc(0)
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length !== undefined) return bytes.length < Number(length) ? undefined : bytes.subarray(0, Number(length))
  if (/\r\ntransfer-encoding: *chunked/i.test(head)) return unchunk(bytes)
  throw new Error(`an answer without a length: ${head}`)
}

interface Pending {
  readonly isHead: boolean
  readonly request: string
  readonly since: number
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: Error) => void
}

const patienceMs = 8_000
const open = new Set<Connection>()

// One timer serves all connections. A timer for each request would cost more than all other work here.
setInterval(() => {
  const latest = performance.now() - patienceMs
  for (const connection of open) connection.giveUp(latest)
}, 1000).unref()

/** A connection that is opened when it is needed, and again after the server has closed it. */
export class Connection {
  private readonly target: Target
  private socket: Socket | undefined
  private received: Buffer | undefined
  private pending: Pending | undefined

  constructor(target: Target) {
    this.target = target
  }

  /** Opens the connection if it is not open. */
  async open(): Promise<void> {
    if (this.socket !== undefined) return
    const { ca, host, port, secure } = this.target
    const socket = secure
      ? connectSecure({
        host,
        port,
        ...isIP(host) === 0 ? { servername: host } : {},
        ...ca === undefined ? { rejectUnauthorized: false } : { ca },
        ALPNProtocols: ["http/1.1"]
      })
      : connectPlain({ host, port })
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject)
      socket.once(secure ? "secureConnect" : "connect", () => {
        socket.off("error", reject)
        resolve()
      })
    })
    socket.setNoDelay(true)
    socket.on("data", (chunk: Buffer) => this.onData(chunk))
    socket.on("error", (error) => this.lost(socket, error))
    socket.on("close", () => this.lost(socket, new Error("the server closed the connection")))
    this.socket = socket
    open.add(this)
  }

  /** Sends a whole request and returns the whole answer. The connection must be open. */
  send(request: string, isHead = false): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.pending = { isHead, request, since: performance.now(), resolve, reject }
      this.socket?.write(request, "latin1")
    })
  }

  /** Ends the connection if its request was sent before `latest`. */
  giveUp(latest: number): void {
    const { pending, socket } = this
    if (socket === undefined || pending === undefined || pending.since > latest) return
    socket.destroy()
    this.lost(socket, new Error(`no answer in ${patienceMs / 1000} s to ${pending.request.split("\r\n", 1)[0]}`))
  }

  close(): void {
    const { socket } = this
    open.delete(this)
    this.socket = undefined
    socket?.destroy()
  }

  private lost(socket: Socket, error: Error): void {
    if (this.socket !== socket) return
    this.socket = undefined
    open.delete(this)
    this.received = undefined
    const { pending } = this
    this.pending = undefined
    pending?.reject(error)
  }

  private onData(chunk: Buffer): void {
    const { pending } = this
    if (pending === undefined) return this.close()
    const bytes = this.received === undefined ? chunk : Buffer.concat([this.received, chunk])
    this.received = bytes
    const end = bytes.indexOf(headEnd)
    if (end < 0) return
    const head = bytes.toString("latin1", 0, end)
    const status = Number(head.slice(9, 12))
    const body = bodyOf(head, status, bytes.subarray(end + 4), pending.isHead)
    if (body === undefined) return
    this.pending = undefined
    this.received = undefined
    if (/\r\nconnection: *close/i.test(head)) this.close()
    pending.resolve({ status, head, body: body.toString("latin1") })
  }
}

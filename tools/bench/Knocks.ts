import { once } from "node:events"
import type { TLSSocket } from "node:tls"
import { connect } from "node:tls"

/* Clients that do nothing but open connections over TLS, one after another. */

/** How connections were opened. */
export interface Knocked {
  readonly connections: number
  readonly resumed: number
  readonly elapsedMs: number
}

/** Opens a connection; returns whether it resumed, and the ticket for the next one if one is wanted. */
const knock = async (port: number, ticket: Buffer | undefined, wantsTicket: boolean) => {
  const socket: TLSSocket = connect({
    host: "127.0.0.1",
    port,
    rejectUnauthorized: false,
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.3",
    ...ticket === undefined ? {} : { session: ticket }
  })
  const sent = wantsTicket ? once(socket, "session") as Promise<[Buffer]> : undefined
  await once(socket, "secureConnect")
  const isResumed = socket.isSessionReused()
  const [next] = sent === undefined ? [undefined] : await sent
  socket.destroy()
  await once(socket, "close")
  return { isResumed, next }
}

/** The functions the process of such clients offers to the bench. */
export const knocks = {
  /**
   * Opens connections from `concurrency` clients for `seconds` seconds. Each client begins with its first ticket, or
   * without one.
   */
  open: async (
    { concurrency, connections, port, resumes, seconds }: {
      readonly port: number
      readonly concurrency: number
      readonly resumes: boolean
      readonly seconds?: number | undefined
      readonly connections?: number | undefined
    }
  ): Promise<Knocked> => {
    let [opened, resumed, left] = [0, 0, connections ?? Number.POSITIVE_INFINITY]
    const begun = performance.now()
    const end = begun + (seconds ?? Number.POSITIVE_INFINITY) * 1000
    await Promise.all(Array.from({ length: concurrency }, async () => {
      let ticket: Buffer | undefined
      while (left-- > 0 && performance.now() < end) {
        // A connection that resumes gets no new ticket, so the first ticket serves all of them.
        const { isResumed, next } = await knock(port, ticket, resumes && ticket === undefined)
        ticket = next ?? ticket
        opened++
        if (isResumed) resumed++
      }
    }))
    return { connections: opened, resumed, elapsedMs: performance.now() - begun }
  },

  /** Gets a new ticket. */
  ticket: async (port: number): Promise<Buffer> => (await knock(port, undefined, true)).next ?? Buffer.alloc(0),
  /** Whether the service accepts the ticket. */
  isTaken: async ({ port, ticket }: { readonly port: number; readonly ticket: Buffer }): Promise<boolean> =>
    (await knock(port, Buffer.from(ticket), false)).isResumed
}

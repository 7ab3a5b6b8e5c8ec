import { once } from "node:events"
import type { TLSSocket } from "node:tls"
import { connect } from "node:tls"

/* Clients that only open connections over TLS, one after another. */

/** The result of opening connections. */
export interface Knocked {
  readonly connections: number
  readonly resumed: number
  readonly elapsedMs: number
}

/** Opens a connection. Returns whether it resumed a session, and a ticket for the next connection if wanted. */
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

/** The functions that the process of these clients offers to the bench. */
export const knocks = {
  /**
   * Opens connections from `concurrency` clients for `seconds` seconds. If sessions are resumed, each client uses the
   * ticket of its first connection for all later ones.
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
        // A connection that resumes a session gets no new ticket, so all later connections use the first ticket.
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

import { Effect } from "effect"
import type { Scope } from "effect"
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http"
import { createServer } from "node:http"
import { createServer as createSecureServer } from "node:https"
import { listening } from "./Listening.ts"

/** A whole request as a receiver read it. */
export interface Asked {
  readonly head: IncomingMessage
  readonly body: string
}

/** A receiver of webhooks on loopback, with all requests that it got. */
export interface Receiver {
  readonly port: number
  readonly asked: ReadonlyArray<Asked>
}

/** Starts a receiver whose answers `answer` sends. The receiver speaks TLS if it gets a certificate. */
export const receiver = (
  answer: (response: ServerResponse, asked: Asked) => void,
  pair?: { readonly cert: string; readonly key: string }
): Effect.Effect<Receiver, never, Scope.Scope> => {
  const asked: Array<Asked> = []
  const listener: RequestListener = (head, response) => {
    const chunks: Array<Buffer> = []
    head.on("data", (chunk: Buffer) => chunks.push(chunk))
    head.on("end", () => {
      const one = { head, body: Buffer.concat(chunks).toString("utf8") }
      asked.push(one)
      answer(response, one)
    })
  }
  const server = pair === undefined ? createServer(listener) : createSecureServer(pair, listener)
  return Effect.map(listening(server), (port) => ({ port, asked }))
}

/** Accepts every notification. */
export const fine = (response: ServerResponse): void => void response.end("ok")

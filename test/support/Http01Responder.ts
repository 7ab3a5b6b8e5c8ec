import { existsSync, readFileSync } from "node:fs"
import { createServer } from "node:http"
import { basename, join } from "node:path"
import { freePort } from "./Ports.ts"

/** A web server that answers http-01 challenges on a loopback port. */
export interface Http01Responder {
  readonly port: number
  /** The body for each token. A token that is missing here is answered 404. */
  readonly tokens: Map<string, string>
  /** Every request received, in order. */
  readonly requests: Array<{ readonly host: string; readonly path: string }>
  readonly stop: () => Promise<void>
}

const prefix = "/.well-known/acme-challenge/"

/** The options of a responder: its port and further content. */
export interface Http01ResponderOptions {
  /** A directory with files that are served by token. */
  readonly directory?: string
  /** The port, by default a free one. */
  readonly port?: number
  /** Awaited before a request for this host is answered, and after the request was recorded. */
  readonly before?: (host: string) => Promise<void>
}

/** Starts a responder on 127.0.0.1. */
export const startHttp01Responder = async (options: Http01ResponderOptions = {}): Promise<Http01Responder> => {
  const { before, directory } = options
  const tokens = new Map<string, string>()
  const requests: Http01Responder["requests"] = []
  const server = createServer(async (request, response) => {
    const { headers: { host = "" }, url: path = "" } = request
    requests.push({ host, path })
    await before?.(host)
    const token = basename(path)
    const file = directory === undefined ? undefined : join(directory, token)
    const body = tokens.get(token) ??
      (file !== undefined && existsSync(file) ? readFileSync(file, "utf8") : undefined)
    if (!path.startsWith(prefix) || body === undefined) {
      response.statusCode = 404
      response.end()
      return
    }
    response.setHeader("content-type", "application/octet-stream")
    response.end(body)
  })
  const port = options.port ?? await freePort()
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, "127.0.0.1", resolve)
  })
  return {
    port,
    tokens,
    requests,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}

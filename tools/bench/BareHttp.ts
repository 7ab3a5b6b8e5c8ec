import { Resolver } from "node:dns/promises"
import { readFileSync } from "node:fs"
import type { OutgoingHttpHeaders, RequestListener } from "node:http"
import { createServer, get } from "node:http"
import { createServer as createSecureServer } from "node:https"
import type { AddressInfo } from "node:net"
import type { Exchange } from "./Client.ts"

/*
 * A minimal server with recorded answers. It shows the cost of HTTP alone in a server process. It also makes the
 * requests that every http-01 validation needs: two look-ups, and one request on a separate connection.
 */

/** The paths of two PEM files. */
export interface TlsFiles {
  readonly certificate: string
  readonly privateKey: string
}

// Node writes these headers by itself.
const own = new Set(["connection", "date", "keep-alive", "transfer-encoding"])

const headersOf = (head: string): OutgoingHttpHeaders => {
  const headers: { [name: string]: Array<string> } = {}
  for (const line of head.split("\r\n").slice(1)) {
    const colon = line.indexOf(":")
    const name = line.slice(0, colon).toLowerCase()
    if (!own.has(name)) (headers[name] ??= []).push(line.slice(colon + 1).trim())
  }
  return Object.fromEntries(
    Object.entries(headers).map(([name, values]) => [name, values.length > 1 ? values : values[0]])
  )
}

const fetched = (port: number, host: string, path: string): Promise<number> =>
  new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, path, agent: false, headers: { host } }, (response) => {
      let length = 0
      response.on("data", (chunk: Buffer) => {
        length += chunk.length
      })
      response.on("end", () => resolve(response.statusCode === 200 ? length : 0))
    }).on("error", reject)
  })

/** The functions that the process of the bare server offers to the bench. */
export const bareHttp = {
  /** Serves the recorded answers from now on, each at its path. Returns the port. */
  serve: (
    { exchanges, tls }: {
      readonly exchanges: ReadonlyArray<Pick<Exchange, "request" | "answer">>
      readonly tls: TlsFiles | undefined
    }
  ): Promise<number> => {
    const answers = new Map(exchanges.map(({ answer, request }) => [
      request.split(" ", 2)[1],
      { status: answer.status, headers: headersOf(answer.head), body: answer.body }
    ]))
    const listener: RequestListener = (request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const answer = answers.get(request.url)
        const lacks = request.method === "POST" && Buffer.concat(chunks).length === 0
        if (answer === undefined || lacks) return void response.writeHead(500).end()
        response.writeHead(answer.status, answer.headers).end(answer.body)
      })
    }
    const server = tls === undefined
      ? createServer(listener)
      : createSecureServer({ cert: readFileSync(tls.certificate), key: readFileSync(tls.privateKey) }, listener)
    return new Promise((resolve) =>
      server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port))
    )
  },

  /** Looks up a name and fetches its token, `times` times in all, with `concurrency` of these validations at once. */
  validate: async (
    { concurrency, httpPort, path, resolver, times }: {
      readonly resolver: string
      readonly httpPort: number
      readonly path: string
      readonly times: number
      readonly concurrency: number
    }
  ): Promise<void> => {
    const names = new Resolver()
    names.setServers([resolver])
    let left = times
    await Promise.all(Array.from({ length: concurrency }, async () => {
      while (left-- > 0) {
        const host = `floor-${left}.bench.example.org`
        await Promise.all([names.resolve4(host), names.resolve6(host).catch(() => [])])
        if (await fetched(httpPort, host, path) === 0) throw new Error("the floor measures nothing: no token")
      }
    }))
  }
}

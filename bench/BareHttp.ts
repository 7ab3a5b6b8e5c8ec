import type { OutgoingHttpHeaders } from "node:http"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Exchange } from "./Load.ts"

/* A `node:http` server with recorded answers: it shows what HTTP itself costs a server process. */

// Node writes these by itself.
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

/** The functions the bare server's process offers to the bench. */
export const bareHttp = {
  /** Begins to serve the recorded answers, each at its path; answers the port. */
  serve: (exchanges: ReadonlyArray<Exchange>): Promise<number> => {
    const answers = new Map(exchanges.map(({ answer, request }) => [
      request.split(" ", 2)[1],
      { status: answer.status, headers: headersOf(answer.head), body: answer.body }
    ]))
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const answer = answers.get(request.url)
        if (answer === undefined || Buffer.concat(chunks).length === 0) return void response.writeHead(500).end()
        response.writeHead(answer.status, answer.headers).end(answer.body)
      })
    })
    return new Promise((resolve) =>
      server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port))
    )
  }
}

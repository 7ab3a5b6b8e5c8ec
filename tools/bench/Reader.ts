import { Agent, request } from "node:http"
import { setTimeout as delay } from "node:timers/promises"

/* Acts as a program or browser of an operator in a separate process, and reads one path after another. */

/** A read, with its name in the report, its path, and the expected answer. */
export interface Read {
  readonly name: string
  readonly path: string
  /** The expected status, 200 by default. */
  readonly status?: number
  /**
   * Whether the body is a file that is sent while its rows are read. If so, the reader disconnects at the first octet.
   */
  readonly isFile?: boolean
}

/** The result of a read. Times are in milliseconds. */
export interface Reading {
  readonly name: string
  readonly firstOctet: number
  readonly whole: number
  readonly status: number
  /** The number of rows according to the answer, with a plus if the search ended early. */
  readonly total: string
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 })
let origin = ""
let headers: { readonly [name: string]: string } = {}

/** Finds the total in an answer. In a page of the panel, the number has thin spaces between the thousands. */
const totalOf = (body: string): string => {
  const [, total = ""] =
    /"total":(\d+)|<span class="count">[^<]* of ([\d\u202f]+)/.exec(body)?.filter((one) => one !== undefined) ?? []
  const isCut = body.includes(`"truncated":true`) || body.includes("found so far")
  return `${total.replaceAll("\u202f", "")}${isCut ? "+" : ""}`
}

const read = ({ isFile = false, name, path }: Read): Promise<Reading> =>
  new Promise((resolve, reject) => {
    const begun = performance.now()
    const since = () => performance.now() - begun
    const asked = request(`${origin}${path}`, { agent, headers }, (answer) => {
      let body = ""
      let firstOctet = 0
      const end = () => {
        resolve({ name, firstOctet, whole: since(), status: answer.statusCode ?? 0, total: totalOf(body) })
      }
      answer.setEncoding("utf8")
      answer.on("data", (chunk: string) => {
        firstOctet ||= since()
        body += chunk
        if (isFile && answer.statusCode === 200) {
          end()
          answer.destroy()
        }
      })
      answer.on("end", end)
      answer.on("error", reject)
    })
    asked.on("error", reject)
    asked.end()
  })

/** The functions that the reading process offers to the bench. */
export const reader = {
  /** Sends the following reads to this server. */
  target: (server: { readonly origin: string; readonly headers: { readonly [name: string]: string } }): void => {
    origin = server.origin
    headers = server.headers
  },

  /**
   * Makes one read after another, in a cycle that begins at the read with the number `from`. At most `perSecond` reads
   * start in a second. The cycle ends after `count` reads, or with the read that is in progress after `seconds`.
   */
  run: async (parameter: {
    readonly reads: ReadonlyArray<Read>
    readonly from: number
    readonly perSecond: number
    readonly count?: number
    readonly seconds?: number
  }): Promise<ReadonlyArray<Reading>> => {
    const { count = Number.POSITIVE_INFINITY, from, perSecond, reads, seconds = Number.POSITIVE_INFINITY } = parameter
    const begun = performance.now()
    const found: Array<Reading> = []
    while (found.length < count && performance.now() - begun < seconds * 1000) {
      const due = begun + found.length * 1000 / perSecond
      const early = due - performance.now()
      if (early > 0) await delay(early)
      const one = reads[(from + found.length) % reads.length]
      if (one !== undefined) found.push(await read(one))
    }
    return found
  }
}

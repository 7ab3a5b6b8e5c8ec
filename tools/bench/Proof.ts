import { startDnsAnswerer } from "../../test/support/DnsAnswerer.ts"
import { startHttp01Responder } from "../../test/support/Http01Responder.ts"

/* What clients prove control of names by: a name server that leads every name here, and a web server with the tokens. */

/** Both servers, in the process of the clients. */
export interface Proof {
  /** For `dns.resolver`. */
  readonly resolver: string
  readonly httpPort: number
  /** Puts a token there; resolves when it is asked for under the name. */
  readonly offer: (name: string, token: string, content: string) => Promise<void>
}

/** The token that is always there, for who measures what a validation costs at least. */
export const lastingToken = "lasting"

/** Starts both. */
export const startProof = async (): Promise<Proof> => {
  const waiting = new Map<string, () => void>()
  const web = await startHttp01Responder({
    before: (host) => {
      const name = host.split(":", 1)[0] ?? ""
      waiting.get(name)?.()
      waiting.delete(name)
      return Promise.resolve()
    }
  })
  web.tokens.set(lastingToken, `${lastingToken}.${"x".repeat(43)}`)
  const names = await startDnsAnswerer({ fallback: { A: ["127.0.0.1"] } })
  return {
    resolver: names.address,
    httpPort: web.port,
    offer: (name, token, content) => {
      web.tokens.set(token, content)
      return new Promise((resolve) => waiting.set(name, resolve))
    }
  }
}

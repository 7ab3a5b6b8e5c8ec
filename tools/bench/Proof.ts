import { startDnsAnswerer } from "../../test/support/DnsAnswerer.ts"
import { startHttp01Responder } from "../../test/support/Http01Responder.ts"

/*
 * The servers with which clients prove control of names. A name server resolves every name to this host, and a web
 * server has the tokens.
 */

/** Both servers, in the process of the clients. */
export interface Proof {
  /** The address for `dns.resolver`. */
  readonly resolver: string
  readonly httpPort: number
  /** Adds a token to the web server. The promise resolves when the token is requested under the name. */
  readonly offer: (name: string, token: string, content: string) => Promise<void>
}

/** A token that always exists. The bench requests this token to measure the minimum cost of a validation. */
export const lastingToken = "lasting"

/** What a service must know about both servers. */
export type Ways = Pick<Proof, "httpPort" | "resolver">

/** The name of the profile that does not bypass validation. */
export const provedProfile = "proved"

/** Returns the configuration of a service that validates names, at this profile, with the help of both servers. */
export const provedConfiguration = ({ httpPort, resolver }: Ways): string =>
  [
    `[dns]\nresolver = "${resolver}"`,
    `[profiles.${provedProfile}.challenge]\nbypass = false\nallow_loopback = true`,
    `[profiles.${provedProfile}.challenge.http_01]\nport = ${httpPort}`
  ].join("\n\n")

/** The ports of both servers. A port is 0 if any free port will do. */
export interface ProofPorts {
  readonly dnsPort: number
  readonly httpPort: number
}

/** Starts both servers, by default at free ports. */
export const startProof = async (
  { dnsPort, httpPort }: ProofPorts = { dnsPort: 0, httpPort: 0 }
): Promise<Proof> => {
  const waiting = new Map<string, () => void>()
  const web = await startHttp01Responder({
    ...httpPort === 0 ? {} : { port: httpPort },
    before: (host) => {
      const name = host.split(":", 1)[0] ?? ""
      waiting.get(name)?.()
      waiting.delete(name)
      return Promise.resolve()
    }
  })
  web.tokens.set(lastingToken, `${lastingToken}.${"x".repeat(43)}`)
  const names = await startDnsAnswerer({ fallback: { A: ["127.0.0.1"] }, port: dnsPort })
  return {
    resolver: names.address,
    httpPort: web.port,
    offer: (name, token, content) => {
      web.tokens.set(token, content)
      return new Promise((resolve) => waiting.set(name, resolve))
    }
  }
}

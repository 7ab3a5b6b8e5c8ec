import { existsSync } from "node:fs"
import { resolve } from "node:path"
import type { DnsAnswerer } from "./DnsAnswerer.ts"
import { startDnsAnswerer } from "./DnsAnswerer.ts"
import type { Http01Responder, Http01ResponderOptions } from "./Http01Responder.ts"
import { startHttp01Responder } from "./Http01Responder.ts"
import type { Server, ServerOptions } from "./Server.ts"
import { startServer } from "./Server.ts"
import { checkStoredCertificates } from "./StoredCertificates.ts"

/** What validations need: names that resolve to loopback, and a web server there. */
export interface World {
  /** The name server, which resolves every name to 127.0.0.1 unless the zone says otherwise. */
  readonly dns: DnsAnswerer
  readonly responder: Http01Responder
  /** The variables with which a process of the service uses the name server and the responder. */
  readonly env: Readonly<Record<string, string>>
  readonly stop: () => Promise<void>
}

/** Starts the name server and the responder. */
export const startWorld = async (web: Http01ResponderOptions = {}): Promise<World> => {
  const dns = await startDnsAnswerer({ fallback: { A: ["127.0.0.1"] } })
  const responder = await startHttp01Responder(web)
  return {
    dns,
    responder,
    env: { ACME_SVC_DNS__RESOLVER: dns.address, ACME_SVC_CHALLENGE__HTTP_01__PORT: `${responder.port}` },
    stop: async () => {
      await responder.stop()
      await dns.stop()
    }
  }
}

/** A running service, with the world that its validations need. */
export interface Ground extends Pick<World, "dns" | "responder"> {
  readonly server: Server
  /** Ends everything. Fails if a stored certificate is bad. */
  readonly dispose: () => Promise<void>
}

/** Returns the URL of a server's database, which tests read without the service. */
const databaseUrlOf = ({ directory }: Server, { databaseUrl, env }: ServerOptions): string => {
  const url = databaseUrl ?? env?.["ACME_SVC_DATABASE__URL"] ?? "sqlite://sqlite.db"
  return url.startsWith("sqlite://") ? `sqlite://${resolve(directory, url.slice("sqlite://".length))}` : url
}

/** Starts the name server, the responder and a server that uses both. */
export const startGround = async (
  options: ServerOptions = {},
  web: Http01ResponderOptions = {}
): Promise<Ground> => {
  const { dns, env, responder, stop } = await startWorld(web)
  try {
    const server = await startServer({ ...options, env: { ...env, ...options.env } })
    const dispose = async () => {
      try {
        await server.stop()
        if (existsSync(server.caFile)) await checkStoredCertificates(databaseUrlOf(server, options), server.caFile)
      } finally {
        await server.dispose()
        await stop()
      }
    }
    return { server, dns, responder, dispose }
  } catch (error) {
    await stop()
    throw error
  }
}

/**
 * Starts a second server on the database of a ground. The server has the same directory and the same world, but a port
 * of its own.
 */
export const startBeside = ({ dns, responder, server }: Ground, databaseUrl: string): Promise<Server> =>
  startServer({
    databaseUrl,
    directory: server.directory,
    env: {
      ACME_SVC_SERVER__BASE_URL: server.baseUrl,
      ACME_SVC_DNS__RESOLVER: dns.address,
      ACME_SVC_CHALLENGE__HTTP_01__PORT: `${responder.port}`
    }
  })

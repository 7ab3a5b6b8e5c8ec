import { existsSync, mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { createSecureContext, createServer } from "node:tls"
import { startHttp01Responder } from "../support/Http01Responder.ts"
import type { Workplace } from "./Client.ts"

/** Returns where a client without a server of its own leaves its http-01 answers, by token. */
export const tokensOf = (at: Workplace): string => join(at.home, "tokens")

/** Returns where a client without a server of its own leaves `<name>.crt.pem` and `<name>.key.pem` for tls-alpn-01. */
export const alpnCertificatesOf = (at: Workplace): string => join(at.home, "alpn")

const listenForAlpn = async (directory: string, port: number): Promise<() => Promise<void>> => {
  const server = createServer({
    ALPNProtocols: ["acme-tls/1"],
    SNICallback: (name, answer) => {
      const [cert, key] = ["crt", "key"].map((kind) => join(directory, `${name}.${kind}.pem`))
      if (cert === undefined || key === undefined || !existsSync(cert)) return answer(null)
      answer(null, createSecureContext({ cert: readFileSync(cert), key: readFileSync(key) }))
    }
  }, (socket) => socket.on("error", () => socket.destroy()))
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, "127.0.0.1", resolve)
  })
  return async () => {
    await new Promise((resolve) => server.close(resolve))
  }
}

/** Serves what a client leaves in the two directories while `use` runs. */
export const responding = async <A>(at: Workplace, use: () => Promise<A>): Promise<A> => {
  const [tokens, certificates] = [tokensOf(at), alpnCertificatesOf(at)]
  for (const directory of [tokens, certificates]) mkdirSync(directory, { recursive: true })
  const http = await startHttp01Responder({ directory: tokens, port: at.httpPort })
  try {
    const stopAlpn = await listenForAlpn(certificates, at.alpnPort)
    try {
      return await use()
    } finally {
      await stopAlpn()
    }
  } finally {
    await http.stop()
  }
}

import { baoVersion, hasBao, installBao, startBao } from "../../support/OpenBao.ts"
import type { Upstream } from "./Upstream.ts"

/** OpenBao's PKI engine. An engine always uses one host in its URLs, so each proxy has an engine of its own. */
export const openBao: Upstream = {
  name: "OpenBao",
  version: baoVersion,
  isOfGate: false,
  isReference: false,
  strategy: "dns01",
  takesReasons: false,
  // The list is at acme/orders, but the accounts name acme/account/<id>/orders, which answers 403 to every client.
  lists: "none",
  installer: "pip3",
  isThere: hasBao,
  install: installBao,
  start: async (resolver) => {
    const bao = await startBao()
    const write = (path: string, value: object) => bao.call("POST", path, value)
    let engines = 0
    return {
      host: "127.0.0.1",
      port: bao.port,
      directoryFor: async (proxy) => {
        const engine = `pki${++engines}`
        await write(`sys/mounts/${engine}`, {
          type: "pki",
          config: {
            max_lease_ttl: "8760h",
            allowed_response_headers: ["Location", "Replay-Nonce", "Link", "Retry-After"]
          }
        })
        await write(`${engine}/root/generate/internal`, { common_name: "Upstream", key_type: "ec", ttl: "8760h" })
        await write(`${engine}/config/cluster`, { path: `https://${proxy}/v1/${engine}` })
        await write(`${engine}/config/acme`, { enabled: true, dns_resolver: resolver })
        return `/v1/${engine}/acme/directory`
      },
      stop: bao.stop
    }
  }
}

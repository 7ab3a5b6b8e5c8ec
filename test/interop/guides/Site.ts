import { X509Certificate } from "node:crypto"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Server } from "../../support/Server.ts"
import { runToEnd, startServer } from "../../support/Server.ts"
import type { Credential } from "../Client.ts"
import { runCommand, startForeground } from "../Command.ts"
import { addresses } from "./Machine.ts"

/* The service that the guides use, at `https://acme.example.org`, and the name server of `example.org`. */

/** The values for the words of the guides that every reader must replace. */
export interface Words {
  readonly FINGERPRINT: string
  readonly KID: string
  readonly HMAC_KEY: string
  readonly TSIG_SECRET: string
}

/** A running service and its name server. */
export interface Site {
  readonly server: Server
  readonly words: Words
  readonly stop: () => Promise<void>
}

/** Certificates expire so soon that every client finds them due when it looks next. */
const configuration = `[profiles.default]
enabled = true
[eab]
enabled = true
[signer.local_ca]
leaf_validity_days = 20
`

const secret = Buffer.from("a secret of this run, for updates").toString("base64")

/** Starts a name server that answers for `example.org`: `acme` is the service, and every other name the client. */
export const startNameServer = async (directory: string) => {
  mkdirSync(directory)
  const zone = [
    "$TTL 0",
    "@ SOA ns hostmaster 1 3600 600 86400 0",
    "@ NS ns",
    `ns A ${addresses.nameServer}`,
    `acme A ${addresses.service}`,
    `* A ${addresses.client}`,
    ""
  ]
  const options = `options { directory "${directory}"; pid-file none; session-keyfile none; recursion no; notify no;
  managed-keys-directory "${directory}"; listen-on { ${addresses.nameServer}; }; listen-on-v6 { none; }; };`
  const key = `key "acme" { algorithm hmac-sha256; secret "${secret}"; };`
  const zones = `zone "example.org" { type primary; file "zone"; update-policy { grant acme zonesub TXT; }; };`
  writeFileSync(join(directory, "zone"), zone.join("\n"))
  writeFileSync(join(directory, "named.conf"), `controls {};\n${options}\n${key}\n${zones}\n`)
  const words = ["-g", "-n", "1", "-c", join(directory, "named.conf")]
  return startForeground("named", words, { cwd: directory, ready: / running$/ })
}

/** Makes a key and a certificate for the listener of the service, signed by a CA of their own. */
const certify = (directory: string) =>
  runCommand("sh", [
    "-euc",
    [
      "openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=acme.example.org \\",
      "  -addext subjectAltName=DNS:acme.example.org -keyout server.key -out server.csr",
      "openssl x509 -req -in server.csr -copy_extensions copy -CA ca.pem -CAkey ca.key -days 2 -out server.pem"
    ].join("\n")
  ], { cwd: directory })

/** Starts the service and the name server in the network that {@link layWire} made. */
export const startSite = async (directory: string): Promise<Site> => {
  const named = await startNameServer(join(directory, "named"))
  const home = join(directory, "acme-svc")
  mkdirSync(home)
  const env = {
    ACME_SVC_SERVER__BIND_ADDRESS: `${addresses.service}:443`,
    ACME_SVC_SERVER__BASE_URL: "https://acme.example.org",
    ACME_SVC_SERVER__TLS__ENABLED: "true",
    ACME_SVC_DNS__RESOLVER: addresses.nameServer,
    ACME_SVC_CHALLENGE__ENABLED: "http-01,dns-01,tls-alpn-01"
  }
  const command = async (...words: ReadonlyArray<string>): Promise<string> => {
    const { code, stderr, stdout } = await runToEnd(words, { config: configuration, directory: home, env })
    if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}: ${stderr}`)
    return stdout
  }
  await command("init")
  await certify(home)
  const { hmacKey, kid }: Credential = JSON.parse(await command("eab", "create", "--label", "guides", "--json"))
  const server = await startServer({ config: configuration, directory: home, env, tls: true })
  const { fingerprint256 } = new X509Certificate(readFileSync(server.caFile))
  return {
    server,
    words: { FINGERPRINT: fingerprint256, KID: kid, HMAC_KEY: hmacKey, TSIG_SECRET: secret },
    stop: async () => {
      await server.dispose()
      await named.stop()
    }
  }
}

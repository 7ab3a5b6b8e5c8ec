import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Client, Names, Workplace } from "../Client.ts"
import { contact } from "../Client.ts"
import { runCommand } from "../Command.ts"

const how = (at: Workplace): ReadonlyArray<string> => {
  switch (at.challenge) {
    case "http-01":
      return ["--http", "--http.port", `127.0.0.1:${at.httpPort}`]
    case "dns-01":
      return ["--dns", "rfc2136", "--dns.disable-cp", "--dns.resolvers", at.nameServer.address]
    case "tls-alpn-01":
      return ["--tls", "--tls.port", `127.0.0.1:${at.alpnPort}`]
  }
}

const run = (at: Workplace, names: Names, ...words: ReadonlyArray<string>) => {
  const account = ["--path", "lego", "--server", at.directoryUrl, "--accept-tos", "--email", contact]
  const { credential } = at
  const bound = credential === undefined ? [] : ["--eab", "--kid", credential.kid, "--hmac", credential.hmacKey]
  const domains = names.flatMap((name) => ["--domains", name])
  const env = {
    HOME: at.home,
    LEGO_CA_CERTIFICATES: at.trust,
    LEGO_EXPERIMENTAL_CNAME_SUPPORT: "true",
    RFC2136_NAMESERVER: at.nameServer.address,
    RFC2136_TSIG_ALGORITHM: "hmac-sha256.",
    RFC2136_TSIG_KEY: at.nameServer.key.name,
    RFC2136_TSIG_SECRET: at.nameServer.key.secret,
    // By default lego would wait for a minute between two names of one zone.
    RFC2136_SEQUENCE_INTERVAL: "1",
    RFC2136_POLLING_INTERVAL: "1"
  }
  return runCommand("lego", [...account, ...bound, ...domains, ...how(at), ...words], { cwd: at.home, env })
}

/** lego with its own web server, TLS server or dynamic updates. The account key is P-256. */
export const lego: Client = {
  name: "lego",
  commands: ["lego"],
  challenges: ["http-01", "dns-01", "tls-alpn-01"],
  ownsRecords: true,
  issue: (at, names) =>
    run(at, names, "run", ...at.preferredChain === undefined ? [] : ["--preferred-chain", at.preferredChain]),
  renew: (at, names) => run(at, names, "renew", "--days", "4000", "--no-random-sleep"),
  chain: (at, [name]) => readFileSync(join(at.home, "lego/certificates", `${name}.crt`), "utf8"),
  binds: true,
  revoke: (at, names) => run(at, names, "revoke", "--keep", "--reason", "4")
}

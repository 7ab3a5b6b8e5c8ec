import { resolve } from "node:path"
import { databaseSection } from "../settings/Example.ts"
import type { Given } from "./Dialogue.ts"
import { itemsOf } from "./Dialogue.ts"
import { isLocal } from "./SetupQuestions.ts"

/* The configuration that the answers of `setup` stand for. */

const text = (value: string): string => JSON.stringify(value)
const list = (items: ReadonlyArray<string>): string => `[${items.map(text).join(", ")}]`

/**
 * Returns the policy for clients in networks. Who relies on certificates may come from elsewhere, and needs the lists and
 * the CA's certificate.
 */
const networkPolicy = (networks: ReadonlyArray<string>): string =>
  `rules = ["relying-parties", "networks"]

[filter.check.public-paths]
type = "path"
allow = ["/crl", "/ca.pem", "/issuer.cer", "/renewalInfo/*"]

[filter.check.networks]
type = "allowed_ip"
allow = ${list(networks)}
stages = ["connection"]

[filter.rule.relying-parties]
when = "public-paths"
then = "allow"

[filter.rule.networks]
when = "networks"
then = "allow"
`

const localChallenges = `[challenge]
# Lets the server validate names that point to this machine itself. Delete this line in production.
allow_loopback = true

[challenge.http_01]
# The standard port is 80, and production needs it: delete this line then.
port = 5002
`

/**
 * Returns the text of the configuration. `databaseUrl` may contain a password. Paths of the answers begin in `cwd`, and
 * are written so that the service finds the files from everywhere.
 */
export const setupText = (given: Given, cwd: string, databaseUrl: string): string => {
  const { answers } = given
  const of = (name: string): string => answers[name] ?? ""
  const path = (name: string): string => text(resolve(cwd, of(name)))
  const isOwn = answers["tls"] === "own"
  const proxies = answers["proxies"] === undefined ? [] : itemsOf(answers["proxies"])
  const networks = answers["networks"] === undefined ? [] : itemsOf(answers["networks"])
  const sections = [
    `[server]
# The URL under which clients reach the service. Every signed request is compared with it.
base_url = ${text(of("url"))}
bind_address = ${text(of("listen"))}
`,
    ...isOwn || answers["tls"] === "generated"
      ? [
        "[server.tls]\nenabled = true\n" +
        (isOwn ? `cert_path = ${path("tls_cert_path")}\nkey_path = ${path("tls_key_path")}\n` : "")
      ]
      : [],
    databaseSection(databaseUrl),
    ...answers["ca"] === "import"
      ? [
        `[signer.local_ca]\ncert_path = ${path("ca_cert_path")}\nkey_path = ${path("ca_key_path")}\n` +
        (of("ca_passphrase_file") === "" ? "" : `key_passphrase_file = ${path("ca_passphrase_file")}\n`)
      ]
      : [],
    ...isLocal(given) ? [localChallenges] : [],
    ...proxies.length + networks.length === 0 ? [] : [
      "[filter]\n" +
      (proxies.length === 0 ? "" : `trusted_proxies = ${list(proxies)}\n`) +
      (networks.length === 0 ? "" : networkPolicy(networks))
    ],
    ...answers["access"] === "credentials"
      ? ["[eab]\n# New accounts need a credential of `acme-svc eab create`.\nenabled = true\n"]
      : [],
    ...answers["panel"] === "yes"
      ? ["[admin]\n# The panel and the API for operators, at http://localhost:3001.\nenabled = true\n"]
      : [],
    `# An ACME endpoint. Clients are given the URL ${of("url")}/profile/default/directory
[profiles.default]
enabled = true
`
  ]
  const head =
    "# Configuration of acme-svc, as acme-svc setup wrote it. Every key and its default is in config.toml.example.\n"
  return [head, ...sections].join("\n")
}

import { readFileSync } from "node:fs"
import { resolve } from "node:path"
import type { Client } from "../Client.ts"
import { acmeTiny } from "../clients/AcmeTiny.ts"
import { acmetool } from "../clients/Acmetool.ts"
import { apache } from "../clients/Apache.ts"
import { caddy, caddyOfPypi } from "../clients/Caddy.ts"
import { certbot, certbot1, certbot5 } from "../clients/Certbot.ts"
import { dehydrated } from "../clients/Dehydrated.ts"
import { autocert, certmagic } from "../clients/Go.ts"
import { acme4j } from "../clients/Java.ts"
import { lego } from "../clients/Lego.ts"
import { pythonAcme } from "../clients/PythonAcme.ts"
import { rootAcme } from "../clients/RootAcme.ts"
import { rubyAcmeClient } from "../clients/RubyAcmeClient.ts"
import { acme2, instantAcme, lers } from "../clients/Rust.ts"
import { step } from "../clients/Step.ts"
import { uacme } from "../clients/Uacme.ts"

/*
 * What is known about each client, for the table of docs/clients/README.md. The results of runs are not written here,
 * because `Tried.ts` derives them.
 */

/** A feature of a client, according to its own documentation, with the first version that has it, if known. */
type Documented = string

/**
 * The part of the run that a row is about, with the package whose version the table shows, and the client or the
 * recipes that used the package.
 */
export interface Tried {
  readonly package: string
  readonly version: string
  /** The client of the run that has all scenarios. */
  readonly client?: Client
  /** The sections of the pages of docs/clients that are carried out unchanged. */
  readonly recipes?: ReadonlyArray<string>
}

/** A client of the table. */
export interface Row {
  readonly name: string
  readonly tried?: Tried
  /** The version that was tried once by hand, with a credential and http-01, and that is not part of the run. */
  readonly byHand?: string
  readonly eab: Documented
  readonly dns01: Documented
  readonly ari: Documented
  readonly set: string
}

const manifest: { readonly devDependencies: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(resolve(import.meta.dirname, "../../../package.json"), "utf8")
)

const [yes, no, unknown] = ["yes", "no", "not known"] as const

/** Returns the table's data about a client of the run that is not Debian's. */
const pinned = (client: Client): Tried => ({ package: "", version: "", ...client.pinned, client })

/**
 * The rows of the table, beginning with clients that were run. If a package changes within a release of Debian, the
 * version is that of the latest update.
 */
export const rows: ReadonlyArray<Row> = [
  {
    name: "certbot",
    tried: { package: "certbot", version: "2.1.0", client: certbot, recipes: ["certbot", "certbot with dns-01"] },
    eab: yes,
    dns01: yes,
    ari: "from 4.1",
    set: "`--server`, `--eab-kid`, `--eab-hmac-key`; `REQUESTS_CA_BUNDLE` if certbot is not Debian's package"
  },
  {
    name: "certbot of PyPI",
    tried: pinned(certbot5),
    eab: yes,
    dns01: yes,
    ari: yes,
    set: "the same options as for certbot; `REQUESTS_CA_BUNDLE`"
  },
  {
    name: "certbot 1",
    tried: { package: "certbot", version: "2.1.0", client: certbot1 },
    eab: yes,
    dns01: yes,
    ari: no,
    set: "the same options as for certbot; this is version 2.1 with the requests of version 1"
  },
  {
    name: "certbot for nginx",
    tried: { package: "python3-certbot-nginx", version: "2.1.0", recipes: ["nginx"] },
    eab: yes,
    dns01: no,
    ari: "from 4.1",
    set: "`--nginx`, and the options for certbot"
  },
  {
    name: "certbot behind HAProxy",
    tried: { package: "haproxy", version: "2.6.12", recipes: ["HAProxy"] },
    eab: yes,
    dns01: yes,
    ari: "from 4.1",
    set: "a hook that writes chain and key into one file and reloads HAProxy; `strict-sni` for the first start"
  },
  {
    name: "lego",
    tried: { package: "lego", version: "4.9.1", client: lego, recipes: ["lego"] },
    eab: yes,
    dns01: yes,
    ari: "in newer versions",
    set: "`--server`, `--eab --kid --hmac`, `--eab` at renewals; `LEGO_CA_CERTIFICATES`"
  },
  {
    name: "uacme",
    tried: { package: "uacme", version: "1.7.4", client: uacme, recipes: ["uacme"] },
    eab: yes,
    dns01: yes,
    ari: no,
    set: "`-a`, `-e KID:HMAC_KEY` with `new`; uacme reads only the host's list of CAs"
  },
  {
    name: "dehydrated",
    tried: { package: "dehydrated", version: "0.7.0", client: dehydrated, recipes: ["dehydrated"] },
    eab: yes,
    dns01: yes,
    ari: no,
    set: "`CA`, `EAB_KID`, `EAB_HMAC_KEY`; `CURL_OPTS=\"--cacert FILE\"`"
  },
  {
    name: "Apache mod_md",
    tried: { package: "apache2-bin", version: "2.4.71", client: apache, recipes: ["Apache with mod_md"] },
    eab: yes,
    dns01: yes,
    ari: yes,
    set: "`MDCertificateAuthority`, `MDExternalAccountBinding`; `MDCACertificateFile`; a reload each day"
  },
  {
    name: "Caddy",
    tried: { package: "caddy", version: "2.6.2", client: caddy, recipes: ["Caddy"] },
    eab: yes,
    dns01: "with a module",
    ari: "in newer versions",
    set: "`acme_ca`, `acme_eab`; `acme_ca_root`"
  },
  {
    name: "Caddy of PyPI",
    tried: pinned(caddyOfPypi),
    eab: yes,
    dns01: "with a module",
    ari: yes,
    set: "the same options as for Caddy"
  },
  {
    name: "step CLI",
    tried: pinned(step),
    eab: no,
    dns01: no,
    ari: no,
    set: "`step ca certificate --acme`, `--root`; a profile without credentials"
  },
  {
    name: "acme-tiny",
    tried: { package: "acme-tiny", version: "5.0.1", client: acmeTiny },
    eab: no,
    dns01: no,
    ari: no,
    set: "`--directory-url`; a profile without credentials"
  },
  {
    name: "acmetool",
    tried: { package: "acmetool", version: "0.2.2", client: acmetool },
    eab: no,
    dns01: "with a hook",
    ari: no,
    set: "`provider` in `conf/target`; a profile without credentials"
  },
  {
    name: "Node.js: acme-client",
    tried: {
      package: "acme-client",
      version: manifest.devDependencies["acme-client"] ?? "",
      recipes: ["acme-client of Node.js"]
    },
    eab: yes,
    dns01: yes,
    ari: no,
    set: "`directoryUrl`, `externalAccountBinding`; `NODE_EXTRA_CA_CERTS`"
  },
  {
    name: "Node.js: @root/acme",
    tried: { package: "@root/acme", version: manifest.devDependencies["@root/acme"] ?? "", client: rootAcme },
    eab: no,
    dns01: yes,
    ari: no,
    set: "the URL for `init`; a profile without credentials and with `order.finalize_wait_ms`; `NODE_EXTRA_CA_CERTS`"
  },
  {
    name: "Python: acme",
    tried: { package: "python3-acme", version: "2.1.0", client: pythonAcme, recipes: ["acme of Python"] },
    eab: yes,
    dns01: yes,
    ari: "from 4.1",
    set: "`ExternalAccountBinding.from_data`; `REQUESTS_CA_BUNDLE`"
  },
  {
    name: "Ruby: acme-client",
    tried: { package: "ruby-acme-client", version: "2.0.9", client: rubyAcmeClient },
    eab: "from 2.0.13",
    dns01: yes,
    ari: "from 2.0.27",
    set: "`directory`, `external_account_binding`"
  },
  {
    name: "Go: autocert",
    tried: { package: "golang-golang-x-crypto-dev", version: "0.4.0", client: autocert },
    eab: yes,
    dns01: no,
    ari: no,
    set: "`Client.DirectoryURL`, `ExternalAccountBinding`"
  },
  {
    name: "Go: certmagic",
    tried: { package: "golang-github-caddyserver-certmagic-dev", version: "0.17.2", client: certmagic },
    eab: yes,
    dns01: "with a module",
    ari: "in newer versions",
    set: "`CA`, `ExternalAccount`; `TrustedRoots`"
  },
  {
    name: "Rust: instant-acme",
    tried: pinned(instantAcme),
    eab: yes,
    dns01: yes,
    ari: yes,
    set: "`AccountBuilder::create` with the directory, `ExternalAccountKey`; `builder_with_root`"
  },
  {
    name: "Rust: lers",
    tried: pinned(lers),
    eab: yes,
    dns01: yes,
    ari: no,
    set: "`Directory::builder`, `external_account`; `client` with the CA among its roots"
  },
  {
    name: "Rust: acme2",
    tried: pinned(acme2),
    eab: no,
    dns01: yes,
    ari: no,
    set: "`DirectoryBuilder::new`; `http_client` with the CA among its roots; a profile without credentials"
  },
  {
    name: "Java: acme4j",
    tried: pinned(acme4j),
    eab: yes,
    dns01: yes,
    ari: "from 3.2",
    set: "`Session`, `withKeyIdentifier`; an account key that the service accepts; `cacerts`"
  },
  {
    name: "lego 5",
    byHand: "5.6.0",
    eab: yes,
    dns01: yes,
    ari: yes,
    set: "`lego run --server`, `--eab --eab.kid --eab.hmac`; `LEGO_CA_CERTIFICATES`"
  },
  {
    name: "acme.sh",
    byHand: "3.1.4",
    eab: yes,
    dns01: yes,
    ari: "from 3.1.4",
    set: "`--server`, `--eab-kid`, `--eab-hmac-key`; `--ca-bundle`"
  },
  {
    name: "nginx: ngx_http_acme_module",
    eab: yes,
    dns01: no,
    ari: yes,
    set: "`uri`, `external_account_key`; `ssl_trusted_certificate`"
  },
  {
    name: "HAProxy from 3.2 by itself",
    byHand: "3.5-dev5",
    eab: "from 3.4",
    dns01: "from 3.3",
    ari: no,
    set: "section `acme`, experimental; `eab-key-id`, `eab-mac-key`; `httpclient.ssl.ca-file`"
  },
  {
    name: "Traefik",
    eab: yes,
    dns01: yes,
    ari: no,
    set: "`caServer`, `eab.kid`, `eab.hmacEncoded`; `caCertificates`"
  },
  {
    name: "cert-manager",
    eab: yes,
    dns01: yes,
    ari: "from 1.21, `ACMEUseARI`",
    set: "`server`, `externalAccountBinding`; `caBundle`"
  },
  {
    name: "Proxmox VE",
    eab: yes,
    dns01: yes,
    ari: unknown,
    set: "`pvenode acme account register --directory --eab-kid --eab-hmac-key`"
  },
  { name: "Synology DSM", eab: no, dns01: no, ari: no, set: "acme.sh with its hook `synology_dsm`" },
  {
    name: "Windows: win-acme, simple-acme",
    eab: yes,
    dns01: yes,
    ari: yes,
    set: "`--baseuri`, `--eab-key-identifier`, `--eab-key`; put the CA into the machine's store"
  },
  {
    name: "Windows: Posh-ACME",
    eab: yes,
    dns01: yes,
    ari: "from 4.24",
    set: "`Set-PAServer`, `-ExtAcctKID`, `-ExtAcctHMACKey`; put the CA into the machine's store"
  }
]

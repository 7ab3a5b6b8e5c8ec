import * as Schema from "effect/Schema"
import type { Names, Node } from "../engine/config/Key.ts"
import {
  count,
  entries,
  flag,
  integer,
  integerOr,
  milliseconds,
  nodeOf,
  port,
  secret,
  text,
  texts,
  word,
  words
} from "../engine/config/Key.ts"
import {
  addressOrCidr,
  baseUrl,
  bindAddress,
  dnsName,
  exemption,
  httpUrl,
  orEmpty,
  origin,
  path,
  proxyUrl,
  resolver,
  serviceUrl
} from "../engine/config/ValueForm.ts"
import { metadataServices } from "../engine/net/MetadataServices.ts"
import { account, eab, limits } from "./AccountTable.ts"
import { admin } from "./AdminTable.ts"
import { certificates } from "./CertificateTable.ts"
import { databaseUrl, postgresUrl } from "./DatabaseUrl.ts"
import { logFilter } from "./LogFilterForm.ts"
import { notify } from "./NotifyTable.ts"
import { filter, ipam } from "./PolicyTable.ts"
import { signer } from "./SignerTable.ts"

/**
 * The keys of the service, each with its default, range and meaning. A key in this table is automatically read from the
 * file and the environment, checked, inherited by profiles, typed in `Config`, and written to the example and the
 * reference (docs/decisions/configuration.md, "One table of keys").
 */

const deniedByDefault = [
  "0.0.0.0/8",
  "169.254.0.0/16",
  "224.0.0.0/4",
  "255.255.255.255/32",
  "::/128",
  "fe80::/10",
  "ff00::/8",
  ...metadataServices
]

const order = Schema.Struct({
  max_identifiers: count(100, "Names one order may ask for."),
  validity_seconds: count(604800, "Lifetime of an order."),
  retention_days: integer(30, { min: 0 }, "Days after its expiry before an order is deleted; 0 keeps orders for ever."),
  finalize_wait_ms: integer(
    0,
    { min: 0 },
    "How long the answer to finalize waits for the certificate; it then has the order as it is. 0 answers at once."
  )
})

const challenge = Schema.Struct({
  enabled: words(
    ["http-01"],
    { offered: ["http-01", "dns-01", "tls-alpn-01"] },
    "Challenge types offered to clients, in this order."
  ),
  bypass: flag(
    false,
    "Accept every challenge unchecked: anyone who reaches the server gets any certificate. For tests."
  ),
  timeout_ms: milliseconds(5000, "Time limit of one validation attempt; must be less than server.request_timeout_ms."),
  answer_wait_ms: integer(
    0,
    { min: 0 },
    "How long the answer to a request that starts a validation waits for the result. 0 answers at once."
  ),
  max_in_flight_per_account: integer(32, { min: 0 }, "Validations one account may have running; 0 means no limit."),
  denied_addresses: texts(
    deniedByDefault,
    addressOrCidr,
    "Addresses to which a validation never connects, even if allowed_addresses has them."
  ),
  allow_loopback: flag(
    false,
    "Let validations connect to this host too: to loopback, and to the addresses the service listens on."
  ),
  allowed_addresses: texts(
    [],
    addressOrCidr,
    "When not empty, the only addresses to which a validation connects, except the denied ones."
  ),
  http_01: Schema.Struct({
    port: port(80, "Port from which the token is fetched; 80 is the standard."),
    https_port: port(443, "Port for connections after a redirect to https."),
    follow_redirects: flag(true, "Follow redirects of the client's web server."),
    max_redirects: count(5, "Redirects followed in one attempt."),
    max_response_bytes: count(4096, "How many bytes of an answer's body are read.")
  }),
  tls_alpn_01: Schema.Struct({
    port: port(443, "Port for connections; 443 is the standard.")
  })
})

const meta = Schema.Struct({
  terms_of_service: text("", orEmpty(httpUrl), "URL of the terms; when set, clients must agree to them."),
  website: text("", orEmpty(httpUrl), "URL about this service, shown to clients."),
  caa_identities: texts([], dnsName, "Names to use in CAA records, shown to clients. CAA is not checked.")
})

const profileNames: Names = {
  fold: (segment) => segment.toLowerCase().replaceAll("_", "-"),
  fault: (name) => {
    if (name === "none") return "is reserved and cannot name a profile"
    return /^[a-z0-9-]{1,63}$/.test(name)
      ? undefined
      : "cannot name a profile: a name has 1 to 63 lower-case letters, digits and hyphens"
  },
  inheritsAs: "profile"
}

/** Every section and key. `Config` is the type of this schema, except that its profiles are a list. */
export const Table = Schema.Struct({
  database: Schema.Struct({
    url: secret(
      "sqlite://sqlite.db",
      databaseUrl,
      "The database. A SQLite file is made on first use; a PostgreSQL database must exist, and its URL may name several servers."
    ),
    pool_max: integer(
      10,
      { min: 1, max: 1000 },
      "Connections of one process. Two at most read for listings and metrics; on SQLite only one writes."
    ),
    acquire_timeout_ms: milliseconds(5000, "Time a request waits for a connection before it fails."),
    statement_timeout_ms: milliseconds(
      30000,
      "PostgreSQL: time limit of one statement. A lower one of the server, the role or the database counts."
    ),
    lock_timeout_ms: milliseconds(
      10000,
      "PostgreSQL: how long a statement waits for a lock. A lower one of the server, the role or the database counts."
    ),
    idle_in_transaction_timeout_ms: milliseconds(
      30000,
      "PostgreSQL: how long a transaction may wait for its next statement. A lower one of the server, the role or the database counts."
    ),
    pooling: word(
      "session",
      { offered: ["session", "transaction"] },
      "transaction is for a proxy that assigns a connection to each transaction; no effect on SQLite."
    ),
    listen_url: secret(
      "",
      orEmpty(postgresUrl),
      "PostgreSQL: the same database, past a proxy that pools transactions, for the connection of a worker that hears of new jobs. Empty: database.url, or polling with pooling = \"transaction\"."
    ),
    read_url: secret(
      "",
      orEmpty(postgresUrl),
      "PostgreSQL: a standby of the same database, for lists and pages of operators that may lack the last changes. Empty: database.url answers all reads."
    ),
    read_max_lag_seconds: integer(
      30,
      { min: 1, max: 300 },
      "How far behind that standby may be. Beyond it, database.url answers."
    ),
    sqlite: Schema.Struct({
      synchronous: word(
        "full",
        { offered: ["full", "grouped", "normal"] },
        "full: every commit is on the disk before it is answered. grouped: the same, but many commits share one wait for the disk, and other requests continue meanwhile; all processes on the file must have this setting. normal: a power loss can undo the last commits, including issued certificates and revocations. No effect on PostgreSQL."
      )
    })
  }),
  server: Schema.Struct({
    bind_address: text("[::]:3000", bindAddress, "Address to listen on; port 0 asks for a free port."),
    reuse_port: flag(
      false,
      "Let further processes with the acme role listen on this address and on publish.bind_address; the kernel divides connections among them."
    ),
    processes: integerOr(
      "auto",
      1,
      { min: 1, max: 256 },
      "Processes of serve that answer ACME clients on one socket, under a parent that starts them again; auto is one for each core. More than 1 needs PostgreSQL, and each process has its own database.pool_max connections."
    ),
    base_url: text(
      "http://localhost:3000",
      baseUrl,
      "Public URL, as clients see it. With a wrong one every signed request fails."
    ),
    cors_origins: texts(
      [],
      origin,
      "Origins whose scripts may use the ACME endpoints from a browser (RFC 8555 section 6.1); * is every origin."
    ),
    max_concurrent_requests: count(
      100,
      "ACME requests that run at once, in all processes of server.processes together; further requests wait for a turn."
    ),
    admission_wait_ms: integer(
      50,
      { min: 0 },
      "How long a request waits for its turn before it is answered with 503; 0 answers at once."
    ),
    request_timeout_ms: milliseconds(60000, "Time limit of one whole request."),
    max_body_bytes: count(131072, "Greatest size of one request's body."),
    tls: Schema.Struct({
      enabled: flag(false, "Speak HTTPS instead of HTTP."),
      cert_path: text("server.pem", path, "Certificate chain, PEM. A self-signed pair is made when a file is missing."),
      key_path: text("server.key", path, "Key of that certificate, PEM."),
      handshake_timeout_ms: milliseconds(10000, "Time limit of one TLS handshake.")
    })
  }),
  admin,
  order,
  keys: Schema.Struct({
    blocklist_paths: texts(
      [],
      path,
      "Files that list public keys nobody may use: SHA-256 of keys, or Debian's lists of weak keys."
    )
  }),
  limits,
  nonce: Schema.Struct({
    ttl_seconds: count(300, "How long a nonce can be used.")
  }),
  challenge,
  dns: Schema.Struct({
    resolver: text("", orEmpty(resolver), "DNS server, port 53 by default. Empty: the servers of the system.")
  }),
  proxy: Schema.Struct({
    http_url: secret("", orEmpty(proxyUrl), "Forward proxy for http:// targets. Empty: the variable http_proxy."),
    https_url: secret(
      "",
      orEmpty(proxyUrl),
      "Forward proxy for https:// targets. Empty: the variable https_proxy or HTTPS_PROXY."
    ),
    no_proxy: texts(
      [],
      exemption,
      "Targets that are reached without a proxy. Empty: the variable no_proxy or NO_PROXY."
    )
  }),
  signer,
  certificates,
  filter,
  ipam,
  meta,
  account,
  eab,
  notify,
  audit: Schema.Struct({
    reverse_dns: flag(true, "Store the reverse DNS name of the client's address with accounts, orders and audit rows."),
    reverse_dns_timeout_ms: milliseconds(
      2000,
      "Time limit of one such look-up. A failed look-up stores no name and refuses nothing."
    ),
    retention_days: integer(0, { min: 0 }, "Days before a row of the audit trail is deleted; 0 keeps rows for ever.")
  }),
  metrics: Schema.Struct({
    enabled: flag(false, "Serve GET /metrics to anybody who can reach it."),
    bind_address: text("127.0.0.1:3002", bindAddress, "Address that serves metrics and nothing else.")
  }),
  publish: Schema.Struct({
    enabled: flag(
      false,
      "Serve revocation lists and CA certificates in clear on an address of their own, with the acme role."
    ),
    bind_address: text(
      "[::]:3003",
      bindAddress,
      "Address that serves them and nothing else, to anybody who can reach it."
    )
  }),
  logging: Schema.Struct({
    filter: text("acme_svc=info", logFilter, "What is logged; the longest target prefix wins."),
    json_format: flag(false, "One JSON object per line."),
    flatten_event: flag(false, "Fields of an event at the top level; only with json_format."),
    target: word("stdout", { offered: ["stdout", "stderr"] }, "Where the log goes."),
    ansi: flag(true, "Colours, on a terminal and without json_format."),
    span_events: word("none", { offered: ["none", "close", "full"] }, "Records about the beginning and end of spans.")
  }),
  tracing: Schema.Struct({
    endpoint: text(
      "",
      orEmpty(serviceUrl),
      "URL of a collector that receives spans of requests and jobs as OTLP over HTTP in JSON. Empty: no spans are made."
    ),
    sample_percent: integer(100, { min: 0, max: 100 }, "How many of a hundred requests and jobs are traced.")
  }),
  jobs: Schema.Struct({
    poll_interval_ms: milliseconds(1000, "How often the service looks for scheduled work."),
    max_concurrent: count(8, "Jobs of one kind that run at once. Kinds that wait for other hosts have more room."),
    max_attempts: count(5, "Greatest number of attempts of one job."),
    retry_base_seconds: count(30, "Delay before the first retry; it doubles each time."),
    retry_max_seconds: count(3600, "Longest delay between retries."),
    lease_seconds: count(300, "Time limit of one attempt, unless the kind of job has its own limit."),
    retention_days: integer(7, { min: 0 }, "Days before a settled job is deleted; 0 keeps jobs for ever.")
  }),
  profiles: entries(
    profileNames,
    Schema.Struct({
      enabled: flag(
        true,
        "false parks the profile: it is not served, its faults refuse nothing, and its data is kept."
      ),
      order,
      limits,
      meta,
      signer,
      certificates,
      filter,
      ipam,
      challenge,
      notify,
      account,
      eab
    })
  )
})

/** The table in the form that the readers of sources use. */
export const table: Node = nodeOf(Table.ast)

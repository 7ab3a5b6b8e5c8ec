import * as Schema from "effect/Schema"
import { challengeTypeNames } from "../domain/Challenge.ts"
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
import { audit } from "./AuditTable.ts"
import { certificates } from "./CertificateTable.ts"
import { databaseUrl, postgresUrl } from "./DatabaseUrl.ts"
import { logFilter } from "./LogFilterForm.ts"
import { notify } from "./NotifyTable.ts"
import { filter, ipam } from "./PolicyTable.ts"
import { signer } from "./SignerTable.ts"

/**
 * The keys of the service, each with its default, range and meaning. A key in this table is automatically read from the
 * file and the environment, checked, inherited by profiles, typed in `Config`, and written to the example and the
 * reference (docs/contribute/decisions/configuration.md, "One table of keys").
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
  max_identifiers: count(100, "Highest number of names in one order."),
  validity_seconds: count(604800, "Lifetime of an order."),
  retention_days: integer(
    30,
    { min: 0 },
    "An order without a certificate is deleted this many days after its expiry. 0 keeps such orders for ever."
  ),
  finalize_wait_ms: integer(
    0,
    { min: 0 },
    "How long the answer to finalize waits for the certificate. After that, the answer has the order as it is. 0 means no wait."
  )
})

const renewal = Schema.Struct({
  spread: flag(
    false,
    "If true, renewal information asks each client to renew in the hour in which the fewest other clients do, between two thirds and three quarters of the life of its certificate. If false, it offers all of this time."
  )
})

const challenge = Schema.Struct({
  enabled: words(
    ["http-01"],
    { offered: challengeTypeNames },
    "Types of challenges that clients are offered, in this order."
  ),
  bypass: flag(
    false,
    "Accept every challenge without a check: everybody who reaches the server gets any certificate. For tests."
  ),
  timeout_ms: milliseconds(
    5000,
    "Time limit of one validation attempt. It must be less than server.request_timeout_ms."
  ),
  answer_wait_ms: integer(
    0,
    { min: 0 },
    "How long the answer to a request that starts a validation waits for the result. 0 means no wait."
  ),
  max_in_flight_per_account: integer(
    32,
    { min: 0 },
    "How many validations of one account may run at once. 0 means no limit."
  ),
  denied_addresses: texts(
    deniedByDefault,
    addressOrCidr,
    "Addresses to which a validation never connects, even if allowed_addresses lists them."
  ),
  allow_loopback: flag(
    false,
    "Let validations connect to this host too: to loopback, and to the addresses on which the service listens."
  ),
  allowed_addresses: texts(
    [],
    addressOrCidr,
    "If this list is not empty, a validation connects only to these addresses, except the denied ones."
  ),
  http_01: Schema.Struct({
    port: port(80, "Port from which the token is fetched. The standard port is 80."),
    https_port: port(443, "Port for connections after a redirect to https."),
    follow_redirects: flag(true, "Follow redirects of the client's web server."),
    max_redirects: count(5, "How many redirects are followed in one attempt."),
    max_response_bytes: count(4096, "How many bytes of the body of an answer are read.")
  }),
  tls_alpn_01: Schema.Struct({
    port: port(443, "Port for connections. The standard port is 443.")
  })
})

const meta = Schema.Struct({
  terms_of_service: text(
    "",
    orEmpty(httpUrl),
    "URL of the terms of service. If it is set, clients must agree to the terms."
  ),
  website: text("", orEmpty(httpUrl), "URL about this service, shown to clients."),
  caa_identities: texts(
    [],
    dnsName,
    "DNS names with which CAA records can permit this CA; clients see them in the directory. The service itself does not check CAA."
  )
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
      "Highest number of connections of one process. At most two of them are for lists and metrics. On SQLite only one connection writes."
    ),
    acquire_timeout_ms: milliseconds(5000, "How long a request waits for a connection before it fails."),
    statement_timeout_ms: milliseconds(
      30000,
      "PostgreSQL: time limit of one statement. If the server, the role or the database has a lower limit, the lower limit counts."
    ),
    lock_timeout_ms: milliseconds(
      10000,
      "PostgreSQL: how long a statement waits for a lock. If the server, the role or the database has a lower limit, the lower limit counts."
    ),
    idle_in_transaction_timeout_ms: milliseconds(
      30000,
      "PostgreSQL: how long a transaction may wait for its next statement. If the server, the role or the database has a lower limit, the lower limit counts."
    ),
    pooling: word(
      "session",
      { offered: ["session", "transaction"] },
      "PostgreSQL: session is for a direct connection. transaction is for a proxy that assigns a connection to each transaction."
    ),
    listen_url: secret(
      "",
      orEmpty(postgresUrl),
      "PostgreSQL: URL of the same database without the proxy that pools transactions. Workers listen there for new jobs. Empty: workers listen at database.url, or poll if pooling is transaction."
    ),
    read_url: secret(
      "",
      orEmpty(postgresUrl),
      "PostgreSQL: URL of a standby of the same database. Lists and pages of operators that may lack the last changes are read there. Empty: everything is read from database.url."
    ),
    read_max_lag_seconds: integer(
      30,
      { min: 1, max: 300 },
      "How far the standby of read_url may be behind. If it is further behind, the service reads from database.url."
    ),
    sqlite: Schema.Struct({
      synchronous: word(
        "full",
        { offered: ["full", "grouped", "normal"] },
        "SQLite only. full: every commit is on the disk before its request is answered. grouped: the same, but many commits share one wait for the disk, and other requests continue meanwhile; all processes on the file must have this setting. normal: a power loss can undo the last commits, including issued certificates and revocations."
      )
    })
  }),
  server: Schema.Struct({
    bind_address: text("[::]:3000", bindAddress, "Address to listen on; port 0 asks for a free port."),
    reuse_port: flag(
      false,
      "Let several processes with the acme role listen on this address and on publish.bind_address. The kernel divides connections among these processes."
    ),
    processes: integerOr(
      "auto",
      1,
      { min: 1, max: 256 },
      "Number of processes that serve starts to answer ACME clients on one socket. If it is above 1, a parent starts a process again when it ends. auto means one process for each core. More than 1 needs PostgreSQL, and each process has its own database.pool_max connections."
    ),
    base_url: text(
      "http://localhost:3000",
      baseUrl,
      "Public URL of the service, as clients see it. If this URL is wrong, every signed request fails."
    ),
    cors_origins: texts(
      [],
      origin,
      "Origins whose scripts may use the ACME endpoints from a browser (RFC 8555 section 6.1). * means every origin."
    ),
    max_concurrent_requests: count(
      100,
      "How many ACME requests run at once, in all processes of server.processes together. Further requests wait for a turn."
    ),
    admission_wait_ms: integer(
      50,
      { min: 0 },
      "How long a request waits for its turn before it is answered with 503. 0 means no wait."
    ),
    request_timeout_ms: milliseconds(60000, "Time limit of a whole request."),
    max_body_bytes: count(131072, "Greatest size of the body of a request."),
    tls: Schema.Struct({
      enabled: flag(false, "Speak HTTPS instead of HTTP."),
      cert_path: text(
        "server.pem",
        path,
        "Certificate chain, PEM. If a file is missing, the service makes a key and a self-signed certificate."
      ),
      key_path: text("server.key", path, "Key of that certificate, PEM."),
      handshake_timeout_ms: milliseconds(10000, "Time limit of one TLS handshake.")
    })
  }),
  admin,
  order,
  renewal,
  keys: Schema.Struct({
    blocklist_paths: texts(
      [],
      path,
      "Files with lists of public keys that nobody may use: SHA-256 of keys, or Debian's lists of weak keys."
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
      "Targets to which the service connects without a proxy. Empty: the variable no_proxy or NO_PROXY."
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
  audit,
  metrics: Schema.Struct({
    enabled: flag(false, "Serve GET /metrics to anybody who can reach it."),
    bind_address: text("127.0.0.1:3002", bindAddress, "Address on which metrics, and nothing else, are served.")
  }),
  publish: Schema.Struct({
    enabled: flag(
      false,
      "Serve revocation lists and CA certificates without TLS on a separate address, in processes with the acme role."
    ),
    bind_address: text(
      "[::]:3003",
      bindAddress,
      "Address on which these files, and nothing else, are served to anybody who can reach it."
    )
  }),
  logging: Schema.Struct({
    filter: text(
      "acme_svc=info",
      logFilter,
      "Which records are logged. If several targets match a record, the longest one counts."
    ),
    json_format: flag(false, "Write each record as one JSON object on a line."),
    flatten_event: flag(
      false,
      "Write the fields of an event at the top level of the JSON object. Only with json_format."
    ),
    target: word("stdout", { offered: ["stdout", "stderr"] }, "Where the log goes."),
    ansi: flag(true, "Use colours on a terminal. Not with json_format."),
    span_events: word(
      "none",
      { offered: ["none", "close", "full"] },
      "Which records about spans are written: none, a record when a span ends (close), or also a record when it begins (full)."
    )
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
    max_concurrent: count(
      8,
      "How many jobs of one kind run at once in a worker. Kinds that wait for other hosts have more slots."
    ),
    max_attempts: count(5, "How many attempts a job may have."),
    retry_base_seconds: count(30, "Delay before the first retry; it doubles each time."),
    retry_max_seconds: count(3600, "Longest delay between retries."),
    lease_seconds: count(300, "Time limit of one attempt, unless the kind of job has its own limit."),
    retention_days: integer(7, { min: 0 }, "An ended job is deleted after this many days. 0 keeps jobs for ever.")
  }),
  profiles: entries(
    profileNames,
    Schema.Struct({
      enabled: flag(
        true,
        "false parks the profile: the profile is not served, its faults do not prevent a start, and its data stays."
      ),
      order,
      renewal,
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

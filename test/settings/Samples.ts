import { Redacted, Result } from "effect"
import { assert } from "vitest"
import type { Fault } from "../../src/engine/config/ConfigRefused.ts"
import { variableOf } from "../../src/engine/config/KeyPath.ts"
import type { Resolved, Sources } from "../../src/settings/Resolve.ts"
import { resolveConfig } from "../../src/settings/Resolve.ts"

/** A value as an operator writes it. */
export type Sample = string | number | boolean | ReadonlyArray<string>

/** The smallest file that works. */
export const minimal = "[profiles.default]\n"

const inputs = (sources: Partial<Sources>): Sources => ({ fileText: minimal, env: {}, ...sources })

/** Returns the result of the sources. Fails the test if they are refused. */
export const accepted = (sources: Partial<Sources>): Resolved =>
  Result.getOrElse(resolveConfig(inputs(sources)), (refused) => assert.fail(refused.message))

/** Returns the mistakes in the sources. Fails the test if there are none. */
export const refused = (sources: Partial<Sources>): ReadonlyArray<Fault> =>
  Result.match(resolveConfig(inputs(sources)), {
    onFailure: ({ faults }) => faults,
    onSuccess: () => assert.fail("was accepted")
  })

const only = ([fault, ...more]: ReadonlyArray<Fault>): Fault => {
  assert.deepStrictEqual(more, [])
  return fault ?? assert.fail("no fault")
}

/** Returns the only mistake in the sources. */
export const refusedFor = (sources: Partial<Sources>): Fault => only(refused(sources))

/** Returns the mistakes for which the sources are refused or, if they are accepted, those in parts that are off. */
export const found = (sources: Partial<Sources>): ReadonlyArray<Fault> =>
  Result.match(resolveConfig(inputs(sources)), {
    onFailure: ({ faults }) => faults,
    onSuccess: ({ ignored }) => ignored
  })

/** Returns the only mistake that is found. */
export const foundFor = (sources: Partial<Sources>): Fault => only(found(sources))

const toToml = (value: Sample): string =>
  typeof value === "object" ? `[${value.map(toToml).join(", ")}]` : JSON.stringify(value)

/** Returns a file that sets one key and has the profile `default`. */
export const fileWith = (key: string, value: Sample): string =>
  `${key} = ${toToml(value)}\n${key.startsWith("profiles.") ? "" : minimal}`

/** Returns an environment that sets one key. */
export const envWith = (key: string, value: Sample): Record<string, string> => ({
  [variableOf(key.split("."))]: typeof value === "object" ? value.join(",") : String(value)
})

const plain = (value: unknown): unknown => {
  if (Redacted.isRedacted(value)) return Redacted.value(value)
  return value
}

/** Returns the value in use of a key of the process, or of `profiles.default.…`. */
export const valueAt = ({ config }: Resolved, key: string): unknown => {
  const [first, name, ...rest] = key.split(".")
  const start: unknown = first === "profiles" ? config.profiles.find((profile) => profile.name === name) : config
  const path = first === "profiles" ? rest : key.split(".")
  return plain(path.reduce<unknown>(
    (value, member) =>
      typeof value === "object" && value !== null ? new Map(Object.entries(value)).get(member) : undefined,
    start
  ))
}

const milliseconds = [1, 2147483647] as const
const port = [1, 65535] as const
const atLeast = (least: number) => [least, 2147483647] as const

/** Addresses that challenges must not reach unless allowed, as the documents list them. */
export const deniedByDefault: ReadonlyArray<string> = [
  "0.0.0.0/8",
  "169.254.0.0/16",
  "224.0.0.0/4",
  "255.255.255.255/32",
  "::/128",
  "fe80::/10",
  "ff00::/8",
  "100.80.80.80/32",
  "100.96.0.96/32",
  "100.100.100.200/32",
  "168.63.129.16/32",
  "192.0.0.192/32",
  "fd00:42::42/128",
  "fd00:100::100:200/128",
  "fd00:a9fe:a9fe::1/128",
  "fd00:c1::a9fe:a9fe/128",
  "fd00:ec2::23/128",
  "fd00:ec2::254/128",
  "fd20:ce::254/128"
]

/** Returns the keys in both `[notify]` and `[admin.notify]`, which share them. */
const inBoth = <A>(keys: Record<string, A>): Record<string, A> => ({
  ...keys,
  ...Object.fromEntries(Object.entries(keys).map(([key, value]) => [`admin.${key}`, value]))
})

/** Ranges and defaults as the documents give them. */
export const integers: Record<string, { readonly initial: number; readonly range: readonly [number, number] }> = {
  "database.pool_max": { initial: 10, range: [1, 1000] },
  "database.acquire_timeout_ms": { initial: 5000, range: milliseconds },
  "database.statement_timeout_ms": { initial: 30000, range: milliseconds },
  "database.lock_timeout_ms": { initial: 10000, range: milliseconds },
  "database.idle_in_transaction_timeout_ms": { initial: 30000, range: milliseconds },
  "database.read_max_lag_seconds": { initial: 30, range: [1, 300] },
  "server.max_concurrent_requests": { initial: 100, range: atLeast(1) },
  "server.admission_wait_ms": { initial: 50, range: [0, 2147483647] },
  "server.request_timeout_ms": { initial: 60000, range: milliseconds },
  "server.max_body_bytes": { initial: 131072, range: atLeast(1) },
  "server.tls.handshake_timeout_ms": { initial: 10000, range: milliseconds },
  "order.max_identifiers": { initial: 100, range: atLeast(1) },
  "order.validity_seconds": { initial: 604800, range: atLeast(1) },
  "order.retention_days": { initial: 30, range: atLeast(0) },
  "order.finalize_wait_ms": { initial: 0, range: atLeast(0) },
  "limits.window_seconds": { initial: 3600, range: atLeast(1) },
  "limits.accounts_per_network": { initial: 0, range: atLeast(0) },
  "limits.orders_per_account": { initial: 0, range: atLeast(0) },
  "limits.names_per_account": { initial: 0, range: atLeast(0) },
  "limits.pending_authorizations_per_account": { initial: 0, range: atLeast(0) },
  "limits.orders_per_replacement": { initial: 5, range: atLeast(1) },
  "nonce.ttl_seconds": { initial: 300, range: atLeast(1) },
  "challenge.timeout_ms": { initial: 5000, range: milliseconds },
  "challenge.answer_wait_ms": { initial: 0, range: atLeast(0) },
  "challenge.max_in_flight_per_account": { initial: 32, range: atLeast(0) },
  "challenge.http_01.port": { initial: 80, range: port },
  "challenge.http_01.https_port": { initial: 443, range: port },
  "challenge.tls_alpn_01.port": { initial: 443, range: port },
  "challenge.http_01.max_redirects": { initial: 5, range: atLeast(1) },
  "challenge.http_01.max_response_bytes": { initial: 4096, range: atLeast(1) },
  "signer.relay.poll_interval_ms": { initial: 2000, range: milliseconds },
  "signer.relay.poll_timeout_secs": { initial: 300, range: [1, 2147483647] },
  "signer.relay.dns01.propagation.delay_secs": { initial: 30, range: [0, 2147483647] },
  "signer.local_ca.pkcs11.slot_id": { initial: -1, range: atLeast(-1) },
  "signer.local_ca.transit.key_version": { initial: 0, range: atLeast(0) },
  "signer.custom.timeout_ms": { initial: 5000, range: milliseconds },
  "signer.local_ca.leaf_validity_days": { initial: 90, range: [1, 3653] },
  "ipam.timeout_ms": { initial: 5000, range: milliseconds },
  "audit.reverse_dns_timeout_ms": { initial: 2000, range: milliseconds },
  "audit.retention_days": { initial: 0, range: atLeast(0) },
  "audit.syslog.enterprise_number": { initial: 32473, range: [1, 4294967295] },
  "audit.syslog.timeout_ms": { initial: 10000, range: milliseconds },
  "audit.http.timeout_ms": { initial: 10000, range: milliseconds },
  "jobs.poll_interval_ms": { initial: 1000, range: milliseconds },
  "jobs.max_concurrent": { initial: 8, range: atLeast(1) },
  "jobs.max_attempts": { initial: 5, range: atLeast(1) },
  "jobs.retry_base_seconds": { initial: 30, range: atLeast(1) },
  "jobs.retry_max_seconds": { initial: 3600, range: atLeast(1) },
  "jobs.lease_seconds": { initial: 300, range: atLeast(1) },
  "jobs.retention_days": { initial: 7, range: atLeast(0) },
  "tracing.sample_percent": { initial: 100, range: [0, 100] },
  "admin.session_ttl_seconds": { initial: 43200, range: atLeast(1) },
  "admin.session_idle_timeout_seconds": { initial: 3600, range: atLeast(1) },
  "admin.login_max_attempts": { initial: 5, range: atLeast(1) },
  "admin.login_window_seconds": { initial: 300, range: atLeast(1) },
  "admin.max_body_bytes": { initial: 65536, range: atLeast(1) },
  "admin.page_size_max": { initial: 200, range: atLeast(1) },
  ...inBoth({
    "notify.email.smtp_port": { initial: 587, range: port },
    "notify.email.timeout_ms": { initial: 5000, range: milliseconds }
  }),
  "notify.expiry.lead_days": { initial: 0, range: [0, 3650] },
  "notify.expiry.interval_days": { initial: 7, range: [1, 365] },
  "notify.expiry.max_entries": { initial: 50, range: [1, 1000] },
  "admin.tls.handshake_timeout_ms": { initial: 10000, range: milliseconds }
}

/** Keys that take an integer of a range or one word, and their defaults. */
export const integersOrWords: Record<
  string,
  { readonly initial: number; readonly range: readonly [number, number]; readonly word: string }
> = { "server.processes": { initial: 1, range: [1, 256], word: "auto" } }

/** Defaults of the booleans. */
export const booleans: Record<string, boolean> = {
  "server.reuse_port": false,
  "server.tls.enabled": false,
  "admin.enabled": false,
  "admin.require_mfa": false,
  "admin.tls.enabled": false,
  "audit.reverse_dns": true,
  "metrics.enabled": false,
  "publish.enabled": false,
  "challenge.allow_loopback": false,
  "challenge.bypass": false,
  "renewal.spread": false,
  "challenge.http_01.follow_redirects": true,
  "eab.enabled": false,
  "signer.custom.supports_crl": false,
  "signer.relay.revocation_reasons": true,
  "signer.custom.supports_renewal_info": false,
  "notify.expiry.to_contacts": false,
  "ipam.netbox.insecure_skip_verify": false,
  "ipam.phpipam.insecure_skip_verify": false,
  "logging.json_format": false,
  "logging.flatten_event": false,
  "logging.ansi": true,
  "profiles.<name>.enabled": true
}

interface TextSamples {
  readonly initial: Sample
  readonly good: ReadonlyArray<Sample>
  readonly bad: ReadonlyArray<Sample>
}

const paths = (initial: string): TextSamples => ({ initial, good: ["other/file.pem", "/etc/x y"], bad: [""] })
const oneOf = (initial: string, good: ReadonlyArray<string>): TextSamples => ({ initial, good, bad: ["", "sometimes"] })
const anything: TextSamples = { initial: "", good: ["", " Example, Inc. ", "0"], bad: [] }
const normalUrls: TextSamples = {
  initial: [],
  good: [[], ["http://crl.example.org/ca.crl", "https://b.example.org/?x=1"]],
  bad: [["ldap://x/"], ["ca.crl"], ["http://crl.example.org"], ["HTTP://crl.example.org/"], [
    "http://u@crl.example.org/"
  ]]
}
const addresses = (initial: ReadonlyArray<string>): TextSamples => ({
  initial,
  good: [[], ["10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "::1"]],
  bad: [["localhost"], ["10.0.0.0/33"], ["10.0.0"], ["::/129"], ["10.0.0.0/8", "10.0.0.0/"], ["010.0.0.1"]]
})
const publicUrl: TextSamples = {
  initial: "",
  good: ["", "https://pki.example.org/terms?v=2#top"],
  bad: ["pki.example.org", "ftp://x/", "https://", "https://a b/", "javascript:alert(1)", "https://x/\"><"]
}

const serviceUrl: TextSamples = {
  initial: "",
  good: ["", "https://ipam.example.org", "http://[::1]:8000/netbox/"],
  bad: ["ipam.example.org", "ftp://x/", "https://x/?a", "https://x/#a", "https://u:p@x/"]
}
const proxy: TextSamples = {
  initial: "",
  good: ["", "http://proxy.example.org:3128", "http://user:p%40ss@[::1]:8080/", "http://10.0.0.1"],
  bad: [
    "proxy.example.org",
    "https://proxy.example.org",
    "socks5://p:1",
    "http://",
    "http://p/path",
    "http://p?x",
    "http://a%@p"
  ]
}
const optionalPath: TextSamples = { initial: "", good: ["", "roots.pem", "/etc/x y"], bad: [] }
const field = (initial: string): TextSamples => ({ initial, good: ["acme-names", "X_1"], bad: ["", "a b", "a/b", "ä"] })

const entryNames: TextSamples = { initial: [], good: [[]], bad: [["a b"], ["A"], ["a_b"]] }

const notifications: Record<string, TextSamples> = inBoth({
  "notify.enabled": { initial: [], good: [[]], bad: [["sms"], ["email", "email"]] },
  "notify.webhook_enabled": entryNames,
  "notify.custom_enabled": entryNames,
  "notify.template_dir": optionalPath,
  "notify.email.smtp_host": {
    initial: "",
    good: ["", "mail.example.org", "192.0.2.1", "2001:db8::1"],
    bad: ["mail.example.org/x", "a b", "a\r\nb"]
  },
  "notify.email.smtp_security": oneOf("starttls", ["starttls", "tls", "none"]),
  "notify.email.smtp_username": { ...anything, good: [""] },
  "notify.email.smtp_password": { ...anything, good: [""] },
  "notify.email.from": {
    initial: "",
    good: ["", "acme@example.org", "ACME Service <acme@example.org>", "Zertifikate für alle <acme@example.org>"],
    bad: ["acme", "a@b, c@d", "A <a@b>, B <c@d>", "a@b\r\nBcc: c@d", "A <a<b>@c>", "<a@b>x", "A\u0000 <a@b>", "@", "a@"]
  },
  "notify.email.to": {
    initial: [],
    good: [[], ["a@example.org", "B <b@example.org>"]],
    bad: [["a"], ["a@b\nc@d"], ["a@b", "c"], [`${"a".repeat(250)}@b.example`]]
  },
  "notify.email.events": {
    initial: [
      "profile_mounted",
      "account_created",
      "account_deactivated",
      "certificate_issued",
      "certificate_revoked",
      "challenge_failed",
      "certificates_expiring",
      "admin_sign_in",
      "admin_credential_changed"
    ],
    good: [[], ["certificate_issued"], ["admin_sign_in", "challenge_failed"]],
    bad: [["issued"], ["certificate_issued", "certificate_issued"]]
  }
})

/** Values of the other keys, as the documents describe them. */
export const others: Record<string, TextSamples> = {
  ...notifications,
  "certificates.default": {
    initial: "default",
    good: ["default"],
    bad: ["", "Default", "a_b", "a".repeat(33), "a b"]
  },
  "database.url": {
    initial: "sqlite://sqlite.db",
    good: [
      "sqlite:///var/lib/acme.db",
      "postgres://acme:p%23w@db.example.org:5432/acme",
      "postgresql://acme@db/acme?sslmode=verify-full&sslrootcert=ca.pem&application_name=acme",
      "postgres://acme:s@a.example:5432,b.example,[::1]:5433/acme",
      "postgres://acme@a,b/acme?target_session_attrs=primary"
    ],
    bad: [
      "",
      "sqlite://",
      "sqlite:acme.db",
      "sqlite://a.db?mode=ro",
      "sqlite:///var/lib/",
      "mysql://h/d",
      "acme.db",
      "postgres://h/d?password=x",
      "postgres://h/d#x",
      "postgres://u:a b@@h:port/d",
      "postgres://h,/d",
      "postgres://u@h:5432,:5433/d",
      "postgres://h:5432,i:port/d",
      "postgres://h,i/d?target_session_attrs=read-only"
    ]
  },
  "database.listen_url": {
    initial: "",
    good: ["", "postgres://u:p@h/d", "postgresql://u@h1,h2:5433/d?target_session_attrs=primary"],
    bad: ["sqlite://a.db", "h/d", "postgres://h/d?password=x", "postgres://h,/d"]
  },
  "database.read_url": {
    initial: "",
    good: ["", "postgres://u:p@h/d", "postgresql://u@h1,h2:5433/d?target_session_attrs=standby"],
    bad: ["sqlite://a.db", "h/d", "postgres://h/d?password=x", "postgres://h,/d"]
  },
  "database.pooling": oneOf("session", ["session", "transaction"]),
  "database.sqlite.synchronous": oneOf("full", ["full", "normal"]),
  "metrics.bind_address": {
    initial: "127.0.0.1:3002",
    good: ["127.0.0.1:3002", "[::]:9090", "0.0.0.0:0"],
    bad: ["", "3002", "127.0.0.1", "http://127.0.0.1:3002"]
  },
  "publish.bind_address": {
    initial: "[::]:3003",
    good: ["127.0.0.1:3003", "[::]:80", "0.0.0.0:0"],
    bad: ["", "3003", "127.0.0.1", "http://127.0.0.1:3003"]
  },
  "server.bind_address": {
    initial: "[::]:3000",
    good: ["[::]:3000", "127.0.0.1:0", "localhost:65535", "[::1]:80", "pki.example.org:443"],
    bad: [
      "",
      ":3000",
      "3000",
      "127.0.0.1",
      "::1:3000",
      "[::1]",
      "[127.0.0.1]:80",
      "1.2.3:80",
      "h:65536",
      "h:080",
      "h:-1"
    ]
  },
  "server.base_url": {
    initial: "http://localhost:3000",
    good: ["https://pki.example.org", "http://10.0.0.1:8080", "https://pki.example.org/acme", "http://[::1]:3000"],
    bad: [
      "",
      "pki.example.org",
      "https://pki.example.org/",
      "https://pki.example.org/acme/",
      "https://pki.example.org?x",
      "https://pki.example.org#x",
      "https://u:p@pki.example.org",
      "ftp://pki.example.org",
      "https:///x",
      " https://pki.example.org"
    ]
  },
  "admin.bind_address": {
    initial: "127.0.0.1:3001",
    good: ["127.0.0.1:3001", "[::1]:9090", "localhost:0", "127.1.2.3:80"],
    bad: ["", "3001", "127.0.0.1", "http://127.0.0.1:3001"]
  },
  "admin.base_url": {
    initial: "http://localhost:3001",
    good: ["https://panel.example.org", "http://[::1]:3001"],
    bad: ["", "panel.example.org", "https://panel.example.org/", "ftp://panel.example.org"]
  },
  "admin.tls.cert_path": paths("admin.pem"),
  "admin.tls.key_path": paths("admin.key"),
  "server.tls.cert_path": paths("server.pem"),
  "server.tls.key_path": paths("server.key"),
  "server.cors_origins": {
    initial: [],
    good: [[], ["*"], ["https://tool.example.org", "http://localhost:8080", "https://[2001:db8::1]:8443"]],
    bad: [
      ["tool.example.org"],
      ["https://tool.example.org/"],
      ["https://tool.example.org:443"],
      ["https://TOOL.example.org"],
      ["https://tool.example.org/app"],
      ["https://*.example.org"],
      ["https://u@tool.example.org"],
      ["ftp://tool.example.org"],
      ["null"]
    ]
  },
  "account.algorithms": {
    initial: ["ES256", "RS256"],
    good: [["ES256"], ["EdDSA", "ES256", "ES384", "ES512", "RS256"]],
    bad: [[], ["es256"], ["ES256", "ES256"], ["PS256"], ["HS256"], ["none"]]
  },
  "challenge.enabled": {
    initial: ["http-01"],
    good: [["http-01"], ["dns-01"], ["tls-alpn-01", "http-01", "dns-01"]],
    bad: [[], ["http-02"], ["http-01", "http-01"], ["dns-persist-01"]]
  },
  "challenge.denied_addresses": addresses(deniedByDefault),
  "challenge.allowed_addresses": addresses([]),
  "dns.resolver": {
    initial: "",
    good: ["", "9.9.9.9", "9.9.9.9:5353", "2620:fe::fe", "[2620:fe::fe]:53"],
    bad: ["localhost", "dns.example.org:53", "9.9.9.9:0", "9.9.9.9:", "[9.9.9.9]:53", "[::1]"]
  },
  "signer.backend": { initial: "local_ca", good: ["local_ca", "relay", "custom"], bad: ["", "acm"] },
  "proxy.http_url": proxy,
  "proxy.https_url": proxy,
  "proxy.no_proxy": {
    initial: [],
    good: [[], ["*"], ["example.org", ".lab.example", "10.0.0.0/8", "2001:db8::1", "localhost"]],
    bad: [["example.org:80"], ["10.0.0.1:80"], ["[::1]"], ["http://x"], ["*.example.org"], ["a b"], ["10.0.0.0/33"]]
  },
  "signer.relay.directory_url": publicUrl,
  "signer.relay.account_key_path": paths("upstream_account.key"),
  "signer.relay.contact": {
    initial: [],
    good: [[], ["mailto:pki@example.org", "mailto:a+b@example.org"]],
    bad: [["pki@example.org"], ["mailto:"], ["mailto:a@b,c@d"], ["mailto:a@b?cc=x"], ["tel:1"]]
  },
  "signer.relay.challenge_strategy": oneOf("bypass", ["bypass", "http01", "dns01"]),
  "signer.relay.eab.kid": { ...anything, good: [""] },
  "signer.relay.eab.hmac_key": { initial: "", good: [""], bad: ["a b", "a*"] },
  "signer.relay.dns01.provider": oneOf("rfc2136", ["rfc2136"]),
  "signer.relay.dns01.challenge_alias": {
    initial: "",
    good: ["", "acme.example.org", "a_b.example.org."],
    bad: ["*.example.org", "_acme-challenge.example.org", "a..b", "a b"]
  },
  "signer.relay.dns01.propagation.mode": oneOf("none", ["none", "delay"]),
  "signer.relay.dns01.rfc2136.server": {
    initial: "",
    good: ["", "192.0.2.1:53", "[2001:db8::1]:5353", "ns.example.org:53"],
    bad: ["192.0.2.1", "ns.example.org", ":53", "192.0.2.1:0", "2001:db8::1:53"]
  },
  "signer.relay.dns01.rfc2136.zone": {
    initial: "",
    good: ["", "example.org.", "1.168.192.in-addr.arpa."],
    bad: ["example.org", ".", "a..b."]
  },
  "signer.relay.dns01.rfc2136.tsig_key_name": {
    initial: "",
    good: ["", "acme-key", "acme.example.org."],
    bad: ["a b", "a..b"]
  },
  "signer.relay.dns01.rfc2136.tsig_key_secret": {
    initial: "",
    good: ["", "MDEyMzQ1Njc4OWFiY2RlZg=="],
    bad: ["a", "a b", "-_-_"]
  },
  "signer.relay.dns01.rfc2136.tsig_algorithm": {
    initial: "",
    good: ["", "hmac-sha256", "hmac-sha384", "hmac-sha512"],
    bad: ["hmac-md5", "sha256"]
  },
  "signer.custom.script_path": optionalPath,
  "signer.custom.args": { initial: [], good: [[], ["-x", "$HOME", "a b"]], bad: [] },
  "audit.chain_key_path": optionalPath,
  "audit.syslog.address": {
    initial: "",
    good: ["", "logs.example:6514", "[2001:db8::1]:6514"],
    bad: ["logs.example", "logs.example:0", "https://logs.example:6514", ":6514", "logs.example:65536", "a b:1"]
  },
  "audit.syslog.ca_path": optionalPath,
  "audit.syslog.cert_path": { ...optionalPath, good: [""] },
  "audit.syslog.key_path": { ...optionalPath, good: [""] },
  "audit.syslog.facility": oneOf("audit", [
    "user",
    "daemon",
    "auth",
    "authpriv",
    "audit",
    "local0",
    "local1",
    "local2",
    "local3",
    "local4",
    "local5",
    "local6",
    "local7"
  ]),
  "audit.syslog.app_name": { initial: "acme-svc", good: ["ca", "a".repeat(48)], bad: ["", "a b", "é", "a".repeat(49)] },
  "audit.http.url": {
    initial: "",
    good: ["", "https://logs.example/in?source=ca", "http://127.0.0.1:8088/"],
    bad: ["logs.example", "ftp://logs.example/", "https://user:pass@logs.example/", "https://logs.example/#part"]
  },
  "audit.http.token_path": optionalPath,
  "audit.http.ca_path": optionalPath,
  "signer.local_ca.cert_path": paths("ca.pem"),
  "signer.local_ca.key_path": paths("ca.key"),
  "signer.local_ca.key_passphrase_file": optionalPath,
  "signer.local_ca.key_type": oneOf("ecdsa-p256", [
    "ecdsa-p256",
    "ecdsa-p384",
    "rsa-2048",
    "rsa-3072",
    "rsa-4096",
    "ml-dsa-65",
    "ml-dsa-87"
  ]),
  "signer.local_ca.crl_path": paths("ca.crl"),
  "signer.local_ca.crl_der_path": optionalPath,
  "signer.local_ca.crl_distribution_points": normalUrls,
  "signer.local_ca.ca_issuer_urls": normalUrls,
  "signer.local_ca.cross_cert_paths": { initial: [], good: [[], ["/etc/acme/cross.pem", "b.pem"]], bad: [] },
  "signer.local_ca.key_source": { initial: "file", good: ["file"], bad: ["", "vault"] },
  "signer.local_ca.pkcs11.module_path": { ...optionalPath, good: ["/usr/lib/token.so"] },
  "signer.local_ca.pkcs11.token_label": { ...anything, good: ["ca", " CA, 1 "] },
  "signer.local_ca.pkcs11.key_label": anything,
  "signer.local_ca.pkcs11.key_id": { initial: "", good: ["", "01", "A1b2"], bad: ["1", "0x01", "a1 b2"] },
  "signer.local_ca.pkcs11.pin_file": { ...optionalPath, good: ["/run/other"] },
  "signer.local_ca.transit.address": {
    initial: "",
    good: ["https://bao.example.org:8200/a/", "http://127.0.0.1:8200", "http://localhost", "http://[::1]:1"],
    bad: ["bao.example.org:8200", "ftp://a", "https://a/?b", "http://bao.example.org", "http://10.0.0.1:8200"]
  },
  "signer.local_ca.transit.mount": {
    initial: "transit",
    good: ["a", "a/b-c/D.1"],
    bad: ["", "/a", "a/", "a//b", "a/../b"]
  },
  "signer.local_ca.transit.key": { initial: "", good: ["a", "a.b-C_1"], bad: ["-a", "a-", "a/b", "a b", ".."] },
  "signer.local_ca.transit.namespace": { initial: "", good: ["", "a/b"], bad: ["/a", "a/", "a b", "a\r\nb"] },
  "signer.local_ca.transit.token_file": { ...optionalPath, good: ["/run/other"] },
  "signer.local_ca.transit.ca_path": optionalPath,
  "signer.local_ca.subject.common_name": {
    initial: "ACME Service Local CA",
    good: ["x", "x".repeat(64)],
    bad: ["x".repeat(65)]
  },
  "signer.local_ca.subject.organization": anything,
  "signer.local_ca.subject.organizational_unit": anything,
  "signer.local_ca.subject.country": { initial: "", good: ["", "IT"], bad: ["I", "ITA", "1T"] },
  "signer.local_ca.subject.state": anything,
  "signer.local_ca.subject.locality": anything,
  // PolicyRules.test.ts checks combinations of the following keys, and the named tables.
  "filter.rules": { initial: [], good: [[]], bad: [["A"], ["a_b"], ["or"]] },
  "filter.default": oneOf("deny", ["allow", "deny"]),
  "filter.trusted_proxies": addresses([]),
  "filter.forwarded_header": {
    initial: "x-forwarded-for",
    good: ["x-forwarded-for", "X-Real-IP", "cf-connecting-ip"],
    bad: ["", "x forwarded", "x:", "x-forwarded-for\r"]
  },
  "admin.filter.rules": { initial: [], good: [[]], bad: [["A"]] },
  "admin.filter.default": oneOf("deny", ["allow", "deny"]),
  "admin.filter.trusted_proxies": addresses([]),
  "admin.filter.forwarded_header": { initial: "x-forwarded-for", good: ["X-Real-IP"], bad: ["", "x:"] },
  "ipam.backend": { initial: "", good: [""], bad: ["infoblox", "NetBox"] },
  "ipam.netbox.url": serviceUrl,
  "ipam.netbox.token": anything,
  "ipam.netbox.custom_field": field("acme_domains"),
  "ipam.netbox.sources": {
    initial: ["dns_name", "custom_field", "device"],
    good: [["dns_name"], ["fhrp", "vip", "device", "custom_field", "dns_name"]],
    bad: [[], ["dns"], ["vip", "vip"]]
  },
  "ipam.netbox.vip_roles": {
    initial: ["vip", "vrrp", "hsrp", "glbp", "carp", "anycast"],
    good: [[], ["vip"]],
    bad: [["a role"], ["vip&role=x"]]
  },
  "admin.template_dir": optionalPath,
  "ipam.netbox.ca_cert_path": optionalPath,
  "ipam.phpipam.url": serviceUrl,
  "ipam.phpipam.token": anything,
  "ipam.phpipam.app_id": field("acme"),
  "ipam.phpipam.custom_field": field("custom_acme_domains"),
  "ipam.phpipam.sources": {
    initial: ["dns_name", "custom_field", "device"],
    good: [["device"], ["device", "custom_field", "dns_name"]],
    bad: [[], ["vip"], ["fhrp"], ["device", "device"]]
  },
  "ipam.phpipam.ca_cert_path": optionalPath,
  "ipam.custom.script_path": optionalPath,
  "ipam.custom.args": { initial: [], good: [[], ["-v", "--x=1"]], bad: [] },
  "keys.blocklist_paths": { initial: [], good: [[], ["a", "/b c/blacklist.RSA-2048"]], bad: [["a\0b"]] },
  "meta.terms_of_service": publicUrl,
  "meta.website": publicUrl,
  "meta.caa_identities": {
    initial: [],
    good: [[], ["pki.example.org", "ca"]],
    bad: [["*.example.org"], ["a b"], ["example.org."], ["https://example.org"]]
  },
  "logging.filter": {
    initial: "acme_svc=info",
    good: ["acme_svc=INFO", "4", "off", "info, acme_svc::challenge=debug", "acme_svc.challenge,off", "hyper=off,Warn"],
    bad: [
      "",
      "acme_svc=loud",
      "info,,warn",
      "=info",
      "a=b=c",
      "6",
      "debugg",
      "acme_svc.chalenge=debug,info",
      "hyper=info"
    ]
  },
  "logging.target": oneOf("stdout", ["stdout", "stderr"]),
  "logging.span_events": oneOf("none", ["none", "close", "full"]),
  "tracing.endpoint": serviceUrl
}

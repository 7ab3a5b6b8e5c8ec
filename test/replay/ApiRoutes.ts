import { chosen, password } from "../support/Operators.ts"
import { code, ids, issuer, sessionId } from "./Ground.ts"
import type { Noun, Person } from "./Play.ts"

/*
 * Every route of the API that plays use, as it was at the time of the recordings. The list is deliberately not made
 * from the declaration of the service.
 */

/** A member of a body or of a query, with an accepted value, and with others that may be refused. */
export interface Member {
  readonly good: unknown
  readonly odd?: ReadonlyArray<unknown>
}

/** A route that plays use. */
export interface ApiRoute {
  readonly noun: Noun
  readonly route: string
  /** The lowest role that may use the route, or the name of another caller. */
  readonly by: "viewer" | "operator" | "admin" | "nobody" | { readonly seat: string }
  /** The value for each parameter of the path. */
  readonly at?: Readonly<Record<string, string>>
  /** Other values of the first parameter, for correct requests. */
  readonly others?: ReadonlyArray<string>
  readonly query?: Readonly<Record<string, Member>>
  readonly body?: Readonly<Record<string, Member>>
  /** The parameters of a correct request. */
  readonly needed?: ReadonlyArray<string>
  /** Members that the body of a correct request leaves out. */
  readonly optional?: ReadonlyArray<string>
}

/** The key of a credential that another server made. */
const hmacKey = Buffer.alloc(32, 9).toString("base64url")

const own = (seat: Person | "dora-half" | "bob-half" | "erin-half" = "vera") => ({ seat })

const text = (good: string, ...odd: ReadonlyArray<unknown>): Member => ({ good, odd })
const word = (...words: readonly [string, ...ReadonlyArray<string>]): Member => ({
  good: words[0],
  odd: [...words.slice(1), words[0].toUpperCase(), "bogus", `${words[0]},${words[0]}`]
})
const whole = (good: number, ...odd: ReadonlyArray<unknown>): Member => ({
  good: String(good),
  odd: ["0", "-5", "1e2", "1.5", "+1", "01", "99999999999999999999", ...odd]
})

const paging = { limit: whole(2, "201", "200"), offset: whole(1, "100") }
const format = { format: word("csv", "json") }
const profile = { profile: text("default", "other", "closed", "none", "Default", "default ") }
const period = {
  since: text(
    "2027-01-01",
    "2027-01-05T08:00:00Z",
    "yesterday",
    "2027-02-30",
    "2027-13-01",
    "1800000000",
    "2027-01-05T08:00:00+01:00"
  ),
  until: text("2027-01-10", "2026-01-01", "tomorrow", "2027-01-10T24:00:00Z")
}
const id = (value: string): Member => ({
  good: value,
  odd: [ids.nobody, value.toUpperCase(), value.replaceAll("-", ""), "x"]
})

const orderFilters = {
  ...profile,
  accountId: id(ids.owner),
  status: word("valid", "pending", "ready", "processing", "invalid", "revoked"),
  identifier: text("www.example.org", "WWW.example.org", "*.wild.example.org", "none.example.org", "www.example.org."),
  identifierSuffix: text("example.org", ".example.org", "org", "EXAMPLE.ORG", "%"),
  identifierContains: text("alias", "a", "_", "%", "EXAMPLE"),
  certSerial: text(
    "4483ed4ebd8c5e569059bbcc9c0687cc",
    "44:83:ED:4E:BD:8C:5E:56:90:59:BB:CC:9C:06:87:CC",
    "0a01",
    "a01",
    "xyz"
  ),
  ...period
}
const { since: _since, status: _status, until: _until, ...byOrder } = orderFilters
const certificateFilters = {
  ...byOrder,
  state: word("valid", "ending", "ended", "revoked"),
  endsAfter: period.since,
  endsBefore: period.until,
  sort: word("newest", "soonest", "latest")
}
const accountFilters = { ...profile, status: word("valid", "deactivated", "revoked"), eabKid: id(ids.bound) }
const expiringFilters = {
  ...profile,
  days: whole(30, "3651", "366", "5"),
  superseded: word("true", "false", "hide", "show", "1")
}
const auditFilters = {
  ...profile,
  accountId: id(ids.owner),
  orderId: id(ids.valid),
  certSerial: text("0a01", "0A:01", "xyz"),
  requestId: text("request-0", "none"),
  event: text("certificate_issued", "bogus", "CERTIFICATE_ISSUED"),
  outcome: word("success", "failure"),
  actorKind: word("acme", "admin", "cli", "system"),
  ...period
}
const label = text(
  "Web servers",
  "x".repeat(200),
  "x".repeat(201),
  "x".repeat(256),
  "a\u001bb",
  "a\u0085b",
  "a\u202eb",
  "a\nb",
  " trimmed ",
  "naïve 🔐"
)
const boundProfile = text("other", "closed", "none", "Default", " default ")
const scope: Readonly<Record<string, Member>> = {
  names: {
    good: ["**.shop.example", "www.example.org"],
    odd: [
      ["*.shop.example"],
      ["SHOP.example"],
      ["bücher.example"],
      ["*"],
      ["**"],
      ["***.example"],
      ["*.*.example"],
      ["a..example"],
      ["-a.example"],
      ["192.0.2.1"],
      ["shop"],
      ["shop.example."],
      ["shop.example", "shop.example"],
      [1],
      [null],
      Array.from({ length: 101 }, (_, at) => `n${at}.example`),
      "shop.example"
    ]
  },
  wildcards: { good: true, odd: [false, "true", "yes"] },
  kinds: { good: ["default"], odd: [["bogus"], ["UPPER"], ["a b"], [1], "default"] },
  validitySeconds: { good: 86_400, odd: ["86400", 3599, 3600, 315_619_200, 315_619_201, -1, 1e300] },
  ordersPerDay: { good: 100, odd: ["100", 1, -1, 1_000_000, 1_000_001] },
  maxAccounts: { good: 1, odd: ["1", -1, 1_000_000, 1_000_001] },
  expiresAt: {
    good: "2030-01-01T00:00:00Z",
    odd: ["2030-01-01", "2026-01-01T00:00:00Z", "tomorrow", "2030-02-30", 1_893_456_000]
  },
  prevalidated: { good: true, odd: [false, "true"] }
}
const step = { password: text(password, "Kraków tramway, 5 stops") }
const contact = text(
  "new@example.org",
  "no address",
  "a@b",
  "Name <a@example.org>",
  "a@example.org, b@example.org",
  "ü@example.org",
  null
)
const target = { username: "bob" }
const nowhere = { id: ids.nobody }
const campaignFilter: Readonly<Record<string, Member>> = {
  issuer: text("0".repeat(64), "0", "x"),
  profile: text("default", "closed", "none"),
  kind: text("default", "bogus"),
  key: text("rsa-2048", "rsa", "dsa", "ECDSA-P256"),
  kid: text(ids.bound, ids.nobody, "x"),
  accountId: text(ids.owner, ids.nobody, "x"),
  name: text("**.example.org", "*.example.org", "a b", "*"),
  serials: text("0a01\n0A:02", "x", "", "# none"),
  issuedBefore: text("2027-01-10", "yesterday", "2027-02-30")
}
const others = ["anna", "carl", "nobody", "Bob", "no body", "-", "x".repeat(100)]

/** All routes that plays use. */
export const apiRoutes: ReadonlyArray<ApiRoute> = [
  { noun: "nonces", route: "GET /api/nonces", by: "viewer" },
  {
    noun: "nonces",
    route: "POST /api/nonces/cleanup",
    by: "operator",
    body: { ttlSeconds: { good: 600, odd: ["600", 0, -1, 1, 59, 60, 86_400, 86_401, 31_536_000, 31_536_001, 1e300] } }
  },

  {
    noun: "credentials",
    route: "GET /api/eab",
    by: "viewer",
    query: { status: word("active", "revoked"), ...paging }
  },
  {
    noun: "credentials",
    route: "GET /api/eab/export",
    by: "viewer",
    query: { status: word("active", "revoked"), ...format }
  },
  {
    noun: "credentials",
    route: "POST /api/eab",
    by: "operator",
    body: {
      label,
      profile: boundProfile
    }
  },
  {
    noun: "credentials",
    route: "GET /api/eab/{kid}",
    by: "viewer",
    at: { kid: ids.bound },
    others: [ids.revokedCredential, ids.narrowCredential]
  },
  {
    noun: "credentials",
    route: "POST /api/eab/{kid}/revoke",
    by: "operator",
    at: { kid: ids.bound },
    others: [ids.revokedCredential]
  },
  {
    noun: "credentials",
    route: "DELETE /api/eab/{kid}",
    by: "operator",
    at: { kid: ids.bound },
    others: [ids.freeCredential, ids.revokedCredential],
    query: { accounts: word("deactivate", "keep", "delete") }
  },
  {
    noun: "scopes",
    route: "POST /api/eab/import",
    by: "operator",
    body: {
      externalKid: text(
        "OLD-KID",
        ids.bound,
        "x".repeat(256),
        "x".repeat(257),
        " trimmed ",
        "a\u001bb",
        "a\u202eb",
        "naïve 🔐"
      ),
      hmacKey: text(
        hmacKey,
        `${hmacKey}=`,
        ` ${hmacKey} `,
        "+/+/".repeat(8),
        "c2hvcnQ",
        "A".repeat(21),
        "A".repeat(22),
        "A".repeat(342),
        "A".repeat(343),
        "no base64!",
        `${hmacKey}\n${hmacKey}`
      ),
      label,
      profile: boundProfile,
      ...scope
    },
    optional: ["profile", ...Object.keys(scope)]
  },
  {
    noun: "scopes",
    route: "PATCH /api/eab/{kid}",
    by: "operator",
    at: { kid: ids.bound },
    others: [ids.revokedCredential, ids.narrowCredential],
    body: {
      ...scope,
      clear: {
        good: ["kinds"],
        odd: [["names"], ["names", "prevalidated"], Object.keys(scope), ["kinds", "kinds"], ["label"], [1], "kinds"]
      }
    },
    optional: ["clear"]
  },

  {
    noun: "jobs",
    route: "GET /api/jobs",
    by: "viewer",
    query: {
      kind: text("signer_issue", "bogus", "SIGNER_ISSUE"),
      status: word("failed", "ready", "running", "done", "cancelled"),
      orderId: id(ids.processing),
      ...paging
    }
  },
  {
    noun: "jobs",
    route: "GET /api/jobs/{id}",
    by: "viewer",
    at: { id: ids.failed },
    others: [ids.waiting, ids.running, ids.delivery]
  },
  {
    noun: "jobs",
    route: "POST /api/jobs/{id}/cancel",
    by: "operator",
    at: { id: ids.waiting },
    others: [ids.running, ids.failed, ids.done, ids.cancelled, ids.delivery]
  },
  {
    noun: "jobs",
    route: "POST /api/jobs/{id}/run",
    by: "operator",
    at: { id: ids.failed },
    others: [ids.waiting, ids.running, ids.done, ids.cancelled, ids.delivery]
  },
  {
    noun: "alike",
    route: "POST /api/jobs/run",
    by: "operator",
    body: { kind: text("signer_issue", "bogus"), error: text("script_failed: exit 1", "none") }
  },
  { noun: "jobs", route: "GET /api/queue", by: "viewer" },
  { noun: "workers", route: "GET /api/workers", by: "viewer" },

  { noun: "accounts", route: "GET /api/accounts", by: "viewer", query: { ...accountFilters, ...paging } },
  { noun: "accounts", route: "GET /api/accounts/export", by: "viewer", query: { ...accountFilters, ...format } },
  {
    noun: "accounts",
    route: "GET /api/accounts/{id}",
    by: "viewer",
    at: { id: ids.owner },
    others: [ids.deactivated, ids.revokedAccount]
  },
  {
    noun: "accounts",
    route: "GET /api/accounts/{id}/orders",
    by: "viewer",
    at: { id: ids.owner },
    others: [ids.idle],
    query: paging
  },
  {
    noun: "accounts",
    route: "PATCH /api/accounts/{id}",
    by: "operator",
    at: { id: ids.owner },
    others: [ids.deactivated, ids.idle],
    body: {
      contact: {
        good: ["mailto:new@example.org"],
        odd: [
          ["new@example.org"],
          ["mailto:a@example.org", "mailto:a@example.org"],
          ["tel:+1"],
          [1],
          [null],
          ["mailto:"],
          ["mailto:a@example.org?cc=b@example.org"],
          Array.from({ length: 11 }, (_, index) => `mailto:a${index}@example.org`),
          [`mailto:${"x".repeat(2000)}@example.org`],
          "mailto:new@example.org"
        ]
      }
    }
  },
  {
    noun: "accounts",
    route: "POST /api/accounts/{id}/deactivate",
    by: "operator",
    at: { id: ids.owner },
    others: [ids.deactivated, ids.revokedAccount, ids.starter]
  },
  {
    noun: "blocks",
    route: "POST /api/accounts/{id}/block",
    by: "operator",
    at: { id: ids.owner },
    others: [ids.deactivated, ids.revokedAccount, ids.starter],
    body: { reason: { good: "a loop", odd: ["x".repeat(500), "x".repeat(501), "a\u001bb"] } }
  },
  {
    noun: "blocks",
    route: "POST /api/accounts/{id}/unblock",
    by: "operator",
    at: { id: ids.owner },
    others: [ids.deactivated, ids.starter]
  },
  {
    noun: "accounts",
    route: "DELETE /api/accounts/{id}",
    by: "operator",
    at: { id: ids.starter },
    others: [ids.owner, ids.deactivated, ids.idle]
  },

  { noun: "audit", route: "GET /api/audit", by: "viewer", query: { ...auditFilters, ...paging } },
  { noun: "audit", route: "GET /api/audit/export", by: "viewer", query: { ...auditFilters, ...format } },
  {
    noun: "chain",
    route: "GET /api/audit/chain",
    by: "viewer",
    query: { after: whole(1), head: text(`1:${"a".repeat(64)}`, "1:a") }
  },
  { noun: "chain", route: "GET /api/audit/receivers", by: "viewer" },
  {
    noun: "audit",
    route: "GET /api/audit/{id}",
    by: "viewer",
    at: { id: "2" },
    others: ["1", "3", "7", "0", "-1", "01", "1.0", "9223372036854775807", "9223372036854775808"]
  },

  { noun: "orders", route: "GET /api/orders", by: "viewer", query: { ...orderFilters, ...paging } },
  { noun: "orders", route: "GET /api/orders/export", by: "viewer", query: { ...orderFilters, ...format } },
  {
    noun: "orders",
    route: "GET /api/orders/{id}",
    by: "viewer",
    at: { id: ids.valid },
    others: [ids.revokedOrder, ids.pending, ids.ready, ids.processing, ids.invalid, ids.expired, ids.relayed]
  },
  {
    noun: "orders",
    route: "GET /api/orders/{id}/certificate",
    by: "viewer",
    at: { id: ids.valid },
    others: [ids.revokedOrder, ids.pending, ids.invalid]
  },
  {
    noun: "orders",
    route: "POST /api/orders/{id}/revoke",
    by: "operator",
    at: { id: ids.valid },
    others: [ids.revokedOrder, ids.pending, ids.processing, ids.expired, ids.expiring],
    body: { reason: { good: 4, odd: [0, 1, 6, 7, 8, 9, 10, 11, -1, "4", "superseded", "keyCompromise", 1.5] } }
  },
  {
    noun: "orders",
    route: "DELETE /api/orders/{id}",
    by: "operator",
    at: { id: ids.pending },
    others: [ids.valid, ids.revokedOrder, ids.processing, ids.expired, ids.relayed]
  },
  {
    noun: "orders",
    route: "GET /api/orphaned-certificates",
    by: "viewer",
    query: { ...profile, status: word("kept", "waiting", "revoked", "stored", "expired"), ...paging }
  },

  {
    noun: "certificates",
    route: "GET /api/certificates",
    by: "viewer",
    query: { ...certificateFilters, ...paging }
  },
  {
    noun: "certificates",
    route: "POST /api/certificates/revoke",
    by: "operator",
    body: {
      serials: {
        good: ["0a01"],
        odd: [["0a01", "0A:01"], ["4483ed4ebd8c5e569059bbcc9c0687cc", "0a02"], ["ff"], ["xyz"], [], [""], "0a01", [1]]
      },
      reason: { good: 4, odd: ["superseded", 1, 7, 11, "x", -1, 1.5] }
    },
    optional: ["reason"]
  },
  { noun: "expiring", route: "GET /api/expiring", by: "viewer", query: { ...expiringFilters, ...paging } },
  { noun: "expiring", route: "GET /api/expiring/export", by: "viewer", query: { ...expiringFilters, ...format } },

  {
    noun: "upstream",
    route: "GET /api/upstream-orders",
    by: "viewer",
    query: { ...profile, status: word("processing", "valid", "invalid"), ...paging }
  },
  {
    noun: "upstream",
    route: "GET /api/upstream-orders/{orderId}",
    by: "viewer",
    at: { orderId: ids.relayed },
    others: [ids.invalid, ids.valid]
  },

  { noun: "profiles", route: "GET /api/profiles", by: "viewer" },
  {
    noun: "profiles",
    route: "GET /api/profiles/{name}/filter",
    by: "viewer",
    at: { name: "default" },
    others: ["other", "closed", "none", "Default"]
  },
  {
    noun: "trials",
    route: "POST /api/profiles/{name}/explain",
    by: "operator",
    at: { name: "default" },
    others: ["other", "closed", "none"],
    body: {
      clientIp: { good: "192.0.2.7", odd: ["x", ""] },
      identifiers: { good: ["www.example.org"], odd: [[], ["a b"], "www.example.org"] },
      accountId: { good: ids.owner, odd: [ids.deactivated, ids.nobody, "x"] }
    }
  },
  { noun: "kinds", route: "GET /api/kinds", by: "viewer", query: profile },
  {
    noun: "kinds",
    route: "POST /api/kinds/try",
    by: "operator",
    body: {
      csr: { good: "AAAA", odd: ["", "-", 1] },
      profile: { good: "default", odd: ["closed", "none"] },
      kind: { good: "default", odd: ["bogus", ""] },
      names: { good: ["www.example.org"], odd: [[], [""], "www.example.org"] }
    }
  },
  { noun: "configuration", route: "GET /api/config", by: "viewer", query: profile },
  { noun: "authorities", route: "GET /api/cas", by: "viewer" },
  { noun: "authorities", route: "GET /api/cas/{issuer}", by: "viewer", at: { issuer }, others: ["0".repeat(64), "x"] },
  { noun: "campaigns", route: "GET /api/campaigns", by: "viewer", query: paging },
  {
    noun: "campaigns",
    route: "POST /api/campaigns/preview",
    by: "viewer",
    body: campaignFilter
  },
  {
    noun: "campaigns",
    route: "POST /api/campaigns",
    by: "admin",
    body: {
      ...campaignFilter,
      reason: { good: "a bug", odd: ["", " ", "x".repeat(501), 1] },
      explanationUrl: text("https://status.example/1", "ftp://status.example", "https://a:b@status.example", "x"),
      pace: { good: 100, odd: [0, -1, 1.5, "x"] },
      revokeAt: text("2099-01-01T00:00:00Z", "2001-01-01", "x"),
      revokeReason: { good: 1, odd: ["superseded", 7, "x"] }
    }
  },
  { noun: "campaigns", route: "GET /api/campaigns/{id}", by: "viewer", at: nowhere, others: ["x"] },
  {
    noun: "campaigns",
    route: "GET /api/campaigns/{id}/silent",
    by: "viewer",
    at: nowhere,
    others: ["x"],
    query: paging
  },
  { noun: "campaigns", route: "POST /api/campaigns/{id}/pause", by: "operator", at: nowhere, others: ["x"] },
  { noun: "campaigns", route: "POST /api/campaigns/{id}/resume", by: "operator", at: nowhere, others: ["x"] },
  { noun: "campaigns", route: "POST /api/campaigns/{id}/end", by: "operator", at: nowhere, others: ["x"] },
  { noun: "campaigns", route: "POST /api/campaigns/{id}/confirm", by: "admin", at: nowhere, others: ["x"], body: step },
  {
    noun: "service",
    route: "GET /api/search",
    by: "viewer",
    needed: ["q"],
    query: {
      q: text(
        "example.org",
        ids.valid,
        ids.owner,
        ids.bound,
        ids.failed,
        "0a01",
        "olga",
        "2",
        "www.example.org",
        "a",
        "none",
        "4483ED4EBD8C5E569059BBCC9C0687CC"
      )
    }
  },
  { noun: "attention", route: "GET /api/attention", by: "viewer" },
  { noun: "service", route: "GET /api/trends", by: "viewer", query: { ...profile, range: word("24h", "7d", "30d") } },
  { noun: "service", route: "GET /api/openapi.json", by: "viewer" },
  { noun: "service", route: "GET /health", by: "nobody" },

  { noun: "notifications", route: "GET /api/notify/deliveries", by: "viewer", query: paging },
  {
    noun: "notifications",
    route: "POST /api/notify/test",
    by: "operator",
    body: {
      target: text("chat", "webhook", "email", "custom", "none", "Chat"),
      event: text("certificate_issued", "bogus", "admin_sign_in"),
      profile: text("default", "__admin__", "other", "closed", "none")
    }
  },

  {
    noun: "operators",
    route: "GET /api/operators",
    by: "admin",
    query: { status: word("active", "disabled"), role: word("viewer", "operator", "admin"), ...paging }
  },
  {
    noun: "operators",
    route: "GET /api/operators/{username}",
    by: "admin",
    at: target,
    others: ["anna", "dora", "erin", ...others]
  },
  {
    noun: "operators",
    route: "GET /api/operators/{username}/sessions",
    by: "admin",
    at: target,
    others: ["anna", "nobody"],
    query: paging
  },
  {
    noun: "compromise",
    route: "POST /api/cas/{issuer}/compromise",
    by: "admin",
    at: { issuer },
    others: ["0".repeat(64), "x"],
    body: step
  },
  { noun: "operators", route: "POST /api/operators/{username}/disable", by: "admin", at: target, others, body: step },
  {
    noun: "operators",
    route: "POST /api/operators/{username}/enable",
    by: "admin",
    at: { username: "carl" },
    others: ["bob", "nobody"],
    body: step
  },
  {
    noun: "operators",
    route: "POST /api/operators/{username}/totp/reset",
    by: "admin",
    at: { username: "dora" },
    others: ["bob", "erin", "anna", "nobody"],
    body: step
  },
  {
    noun: "operators",
    route: "POST /api/operators/{username}/role",
    by: "admin",
    at: target,
    others,
    body: { ...step, role: word("operator", "viewer", "admin") }
  },
  {
    noun: "operators",
    route: "POST /api/operators/{username}/contact",
    by: "admin",
    at: target,
    others,
    body: { ...step, contact },
    optional: ["contact"]
  },
  {
    noun: "operators",
    route: "POST /api/operators/{username}/sessions/{id}/revoke",
    by: "admin",
    at: { username: "bob", id: sessionId("bob") },
    others: ["anna", "nobody"],
    body: step
  },
  {
    noun: "operators",
    route: "POST /api/operators/{username}/sessions/revoke",
    by: "admin",
    at: target,
    others: ["anna", "carl", "nobody"],
    body: step
  },

  {
    noun: "tokens",
    route: "GET /api/tokens",
    by: own("olga"),
    query: { user: text("olga", "anna", "nobody"), ...paging }
  },
  {
    noun: "tokens",
    route: "POST /api/tokens",
    by: own("anna"),
    body: {
      ...step,
      name: text("deploy", "token of anna", "x".repeat(64), "x".repeat(65), "a\u001bb", "a\nb", "naïve 🔐"),
      role: word("viewer", "operator", "admin"),
      expiresInDays: { good: 30, odd: ["30", 0, 1, 366, 367, 1.5, -1, 1e300] },
      user: text("olga", "vera", "carl", "nobody", "OLGA"),
      allowedAddresses: {
        good: ["192.0.2.0/24"],
        odd: [
          ["192.0.2.1"],
          ["2001:db8::/32"],
          ["192.0.2.1/24"],
          ["300.0.0.1"],
          ["x"],
          [1],
          [null],
          Array.from({ length: 33 }, (_, at) => `192.0.2.${at}`),
          "192.0.2.0/24"
        ]
      }
    },
    optional: ["user", "allowedAddresses"]
  },
  {
    noun: "tokens",
    route: "POST /api/tokens/{id}/revoke",
    by: own("olga"),
    at: { id: ids.token },
    others: [ids.ownToken, ids.revokedToken]
  },

  {
    noun: "session",
    route: "POST /api/session",
    by: "nobody",
    body: {
      username: text("vera", "nobody", "carl", "dora", "VERA", "vera "),
      password: text(password, "Kraków tramway, 5 stops", `${password} `)
    }
  },
  { noun: "session", route: "GET /api/session", by: own() },
  { noun: "session", route: "DELETE /api/session", by: own("anna"), query: { all: word("true", "false", "1") } },
  { noun: "session", route: "GET /api/session/mfa", by: own("dora-half") },
  {
    noun: "session",
    route: "POST /api/session/mfa",
    by: own("dora-half"),
    body: { code: text(code, "000000", "ABCDE-FGHIJ", "abcdefghij", "ABCDE-FGHIK", ` ${code} `, code.slice(1)) }
  },
  { noun: "session", route: "DELETE /api/session/mfa", by: own("dora-half") },
  { noun: "session", route: "POST /api/session/mfa/totp", by: own("bob-half") },
  {
    noun: "session",
    route: "POST /api/session/mfa/totp/confirm",
    by: own("erin-half"),
    body: { code: text(code, "000000") }
  },
  { noun: "session", route: "GET /api/mfa", by: own("hugo") },
  { noun: "session", route: "POST /api/mfa/totp", by: own(), body: step },
  {
    noun: "session",
    route: "POST /api/mfa/totp/confirm",
    by: own("erin"),
    body: { code: text(code, "000000", ` ${code} `) }
  },
  { noun: "session", route: "DELETE /api/mfa/totp", by: own("hugo"), body: step },
  { noun: "session", route: "POST /api/mfa/recovery-codes", by: own("hugo"), body: step },
  {
    noun: "session",
    route: "POST /api/account/password",
    by: own(),
    body: {
      currentPassword: step.password,
      newPassword: text(
        chosen,
        "short",
        password,
        "vera",
        "password1234",
        "x".repeat(129),
        "x".repeat(1025),
        "            "
      )
    }
  },
  { noun: "session", route: "POST /api/account/contact", by: own(), body: { ...step, contact }, optional: ["contact"] },
  { noun: "session", route: "GET /api/account/sessions", by: own("anna"), query: paging },
  {
    noun: "session",
    route: "POST /api/account/sessions/{id}/revoke",
    by: own("anna"),
    at: { id: sessionId("anna-elsewhere") },
    others: [sessionId("anna"), sessionId("bob")]
  }
]
